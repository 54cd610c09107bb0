import { useState } from 'preact/hooks'
import { useConsole } from '../console-context.ts'
import { useAction } from '../ui/dialog.tsx'
import { Field, TextField } from '../ui/field.tsx'
import { Icon } from '../ui/icon.tsx'
import { FailureNotice } from '../ui/notice.tsx'
import { Card } from '../ui/page.tsx'
import type { InstallationPart } from './installation-view.tsx'
import { textOn } from './installation-words.ts'

const isColour = (text: string) => /^#[0-9a-f]{6}$/i.test(text)

/** Appearance of the widget, with a preview. */
export function AppearanceCard({ installation, onChanged }: InstallationPart) {
  const { api, announcer } = useConsole()
  const { busy, failure, run } = useAction()
  const { appearance } = installation
  const [title, setTitle] = useState(appearance?.title ?? '')
  const [greeting, setGreeting] = useState(appearance?.greeting ?? '')
  const [accentColor, setAccent] = useState(appearance?.accentColor ?? '#1f6f5c')
  const [position, setPosition] = useState(appearance?.position ?? 'right')
  const valid = isColour(accentColor)

  function save(event: Event) {
    event.preventDefault()
    void run(async () => {
      const answer = await api.workspaces.updateInstallation({
        siteKey: installation.publicSiteKey,
        appearance: changedOf({ title: title.trim(), greeting: greeting.trim(), accentColor, position }, appearance),
      })
      if (answer.installation) onChanged(answer.installation)
      announcer.say('Appearance saved.')
    })
  }

  return (
    <Card title="Appearance">
      <form class="appearance" onSubmit={save} noValidate>
        <div class="stack">
          <TextField label="Title" maxLength={128} value={title} onChange={setTitle} />
          <Field label="Greeting" hint="Shown when the chat is empty.">
            {(attributes) => (
              <textarea
                {...attributes}
                class="input"
                rows={2}
                maxLength={1024}
                value={greeting}
                onInput={(event) => setGreeting(event.currentTarget.value)}
              />
            )}
          </Field>
          <Field label="Accent colour" error={valid ? undefined : 'Enter # and six hexadecimal digits.'}>
            {(attributes) => (
              <div class="copy-row">
                <input
                  {...attributes}
                  class="input mono"
                  maxLength={7}
                  value={accentColor}
                  onInput={(event) => setAccent(event.currentTarget.value.trim())}
                />
                <input
                  type="color"
                  class="colour"
                  aria-label="Choose the accent colour"
                  value={valid ? accentColor : '#000000'}
                  onInput={(event) => setAccent(event.currentTarget.value)}
                />
              </div>
            )}
          </Field>
          <fieldset class="segments">
            <legend>Position</legend>
            {['left', 'right'].map((side) => (
              <label key={side}>
                <input type="radio" name="position" checked={position === side} onChange={() => setPosition(side)} />
                <span>{side === 'left' ? 'Left' : 'Right'}</span>
              </label>
            ))}
          </fieldset>
          <FailureNotice failure={failure} />
          <div class="button-row">
            <button type="submit" class="button primary" disabled={busy || !valid || title.trim() === ''}>
              Save appearance
            </button>
          </div>
        </div>
        <Preview title={title} greeting={greeting} accent={valid ? accentColor : '#888888'} position={position} />
      </form>
    </Card>
  )
}

/** Returns only the edited fields, so that concurrent changes of other fields are kept. */
function changedOf<Fields extends Record<string, string>>(
  fields: Fields,
  shown: Partial<Fields> = {},
): Partial<Fields> {
  const changed = Object.entries(fields).filter(([name, value]) => value !== shown[name])
  return Object.fromEntries(changed) as Partial<Fields>
}

function Preview({
  title,
  greeting,
  accent,
  position,
}: {
  title: string
  greeting: string
  accent: string
  position: string
}) {
  // The content security policy blocks style attributes in markup but allows styles set by script.
  const colours = { backgroundColor: accent, color: textOn(accent) }
  return (
    <div class={`preview at-${position}`} role="img" aria-label="Preview of the widget">
      <div class="preview-panel">
        <div class="preview-head" style={colours}>
          {title}
        </div>
        <p>{greeting}</p>
        <div class="preview-visitor" style={colours}>
          Hello!
        </div>
      </div>
      <div class="preview-launcher" style={colours}>
        <Icon name="inbox" />
      </div>
    </div>
  )
}
