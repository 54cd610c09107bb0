import { useRef, useState } from 'preact/hooks'
import { isFaint, launcherColors } from '../../../browser/colors.ts'
import { Field, TextField } from '../ui/field.tsx'
import { Icon } from '../ui/icon.tsx'
import { FailureNotice } from '../ui/notice.tsx'
import { Card } from '../ui/page.tsx'
import { useUnsaved } from '../ui/unsaved.tsx'
import { type InstallationPart, useUpdate } from './update.ts'

/** Card that edits the widget's appearance and shows a preview. */
export function AppearanceCard(part: InstallationPart) {
  const { appearance } = part.installation
  const { failure, save } = useUpdate(part)
  const [title, setTitle] = useState(appearance?.title ?? '')
  const [greeting, setGreeting] = useState(appearance?.greeting ?? '')
  const [accentColor, setAccentColor] = useState(appearance?.accentColor ?? '#1f6f5c')
  const [position, setPosition] = useState(appearance?.position ?? 'right')
  const isValid = /^#[0-9a-f]{6}$/i.test(accentColor)
  const faint = isValid && (['light', 'dark'] as const).find((scheme) => isFaint(accentColor, scheme))

  const fields = { title: title.trim(), greeting: greeting.trim(), accentColor, position }
  const { form, onSaved } = useUnsaved(fields)
  /** The values that this form shows or has saved. A colleague may have changed the settings since. */
  const known = useRef(fields)

  async function submit(event: Event) {
    event.preventDefault()
    if (!isValid || fields.title === '') return
    // Sends only edited fields, so that concurrent changes of other fields are not overwritten.
    const edited = Object.entries(fields).filter(
      ([name, value]) => value !== known.current[name as keyof typeof fields],
    )
    if (!(await save({ appearance: Object.fromEntries(edited) }, 'Appearance saved.'))) return
    known.current = fields
    onSaved()
  }

  return (
    <Card title="Appearance">
      <form class="appearance" ref={form} onSubmit={submit} noValidate>
        <div class="stack">
          <TextField
            label="Title"
            maxLength={128}
            value={title}
            error={fields.title === '' ? 'Enter a title.' : undefined}
            onChange={setTitle}
          />
          <TextField
            label="Greeting"
            hint="Shown when the chat is empty."
            rows={2}
            maxLength={1024}
            value={greeting}
            onChange={setGreeting}
          />
          <Field
            label="Accent colour"
            hint={faint && `Hardly visible on the ${faint} background. The chat adds a thin line around it.`}
            error={isValid ? undefined : 'Enter # and six hexadecimal digits.'}
          >
            {(attributes) => (
              <div class="copy-row">
                <input
                  {...attributes}
                  class="input mono"
                  maxLength={7}
                  value={accentColor}
                  onInput={(event) => setAccentColor(event.currentTarget.value.trim())}
                />
                <input
                  type="color"
                  class="colour"
                  aria-label="Choose the accent colour"
                  value={isValid ? accentColor : '#000000'}
                  onInput={(event) => setAccentColor(event.currentTarget.value)}
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
        </div>
        <Preview
          title={title}
          greeting={greeting}
          accentColor={isValid ? accentColor : '#888888'}
          position={position}
        />
      </form>
    </Card>
  )
}

function Preview({ title, greeting, accentColor, position }: Record<string, string>) {
  // The content security policy blocks style attributes in markup, but not styles that a script
  // sets.
  const colours = { backgroundColor: accentColor, color: launcherColors(accentColor).onAccent }
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
