import { chatIcon } from '../../../browser/chat/chat-icon.ts'
import { initialOf } from '../../../browser/chat/initials.ts'
import { isFaint, launcherColors } from '../../../browser/colors.ts'
import { useConsole } from '../console-context.ts'
import { storedPath } from '../ui/avatar.tsx'
import { Form, Segments, TextField, useForm } from '../ui/form.tsx'
import { Card } from '../ui/page.tsx'
import { PictureField } from '../ui/picture-field.tsx'
import { repliesHint, repliesOf } from './installation-words.ts'
import { type InstallationPart, useUpdate } from './update.ts'

export function AppearanceCard(part: InstallationPart) {
  const { appearance: stored } = part.installation
  const { title = '', greeting = '', accentColor = '#1f6f5c', position = 'right', openingReplies } = stored ?? {}
  const { update } = useUpdate(part)
  const form = useForm({
    start: { title, greeting, accentColor, position, replies: openingReplies?.texts.join('\n') ?? '' },
    problemsOf: (draft) => ({
      title: draft.title.trim() === '' ? 'Enter a title.' : undefined,
      accentColor: isColour(draft.accentColor) ? undefined : 'Enter # and six hexadecimal digits.',
    }),
    save: (_, { title, greeting, replies, ...look }) => {
      const openingReplies = replies === undefined ? undefined : repliesOf(replies)
      const texts = { title: title?.trim(), greeting: greeting?.trim() }
      return update({ appearance: { ...look, ...texts, openingReplies } }, 'Appearance saved.')
    },
  })
  const { draft, problems, set, field } = form
  const isValid = isColour(draft.accentColor)
  const faint = isValid && (['light', 'dark'] as const).find((scheme) => isFaint(draft.accentColor, scheme))

  return (
    <Card title="Appearance">
      <Form form={form} class="appearance">
        <div class="stack">
          <TextField label="Title" maxLength={128} {...field('title')} error={problems.title} />
          <TextField
            label="Greeting"
            hint="Shown when the chat is empty."
            rows={2}
            maxLength={1024}
            {...field('greeting')}
          />
          <TextField label="Opening replies" hint={repliesHint} rows={2} {...field('replies')} />
          <TextField
            label="Accent colour"
            hint={
              faint &&
              (faint === 'light'
                ? 'Hardly visible on the light background. The chat adds a thin line around it.'
                : 'Hardly visible on the dark background. The chat adds a thin line around it.')
            }
            class="input mono"
            maxLength={7}
            {...field('accentColor')}
            onChange={(text) => set({ accentColor: text.trim() })}
            error={problems.accentColor}
            beside={
              <input
                type="color"
                class="colour"
                aria-label="Choose the accent colour"
                value={isValid ? draft.accentColor : '#000000'}
                onInput={(event) => set({ accentColor: event.currentTarget.value })}
              />
            }
          />
          <Segments
            legend="Position"
            options={[
              ['left', 'Left'],
              ['right', 'Right'],
            ]}
            {...field('position')}
          />
        </div>
        <Preview {...draft} />
      </Form>
    </Card>
  )
}

const isColour = (text: string) => /^#[0-9a-f]{6}$/i.test(text)

/** Looks like the widget: `panel.css`, `messages.css` and `launcher.css` have the same sizes and colours. */
function Preview({ title = '', greeting, accentColor, position }: Partial<Record<string, string>>) {
  const { accent, onAccent } = launcherColors(accentColor)
  return (
    <div
      class={`preview at-${position}`}
      role="img"
      aria-label="Preview of the widget"
      // The content security policy forbids style attributes in HTML. A script may set styles.
      style={{ '--accent': accent, '--on-accent': onAccent }}
    >
      <div class="preview-panel">
        <div class="preview-head">
          <span class="avatar preview-mark">{initialOf(title)}</span>
          {title}
        </div>
        <p>{greeting}</p>
        <div class="preview-visitor">Hello!</div>
      </div>
      <svg class="preview-launcher" viewBox="0 0 24 24" aria-hidden="true">
        <path d={chatIcon} />
      </svg>
    </div>
  )
}

export function LogoCard({ installation: { publicSiteKey: siteKey, appearance }, onChanged }: InstallationPart) {
  const { api } = useConsole()
  const url = appearance?.logoUrl
  return (
    <Card title="Logo">
      <PictureField
        label="Logo"
        hint={
          url === undefined || storedPath(url)
            ? 'The chat shows it beside the title, until an operator answers.'
            : `The present logo is at ${URL.parse(url)?.host}. A file that you choose replaces it.`
        }
        shape="logo"
        initials={initialOf(appearance?.title ?? '')}
        url={url}
        onSave={async (picture) => {
          const { installation } = await api.workspaces.setLogo({ siteKey, ...picture })
          if (installation) onChanged(installation)
        }}
      />
    </Card>
  )
}
