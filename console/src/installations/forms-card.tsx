import { useState } from 'preact/hooks'
import { useConsole } from '../console-context.ts'
import { issueText } from '../failures.ts'
import { useAction } from '../ui/dialog.tsx'
import { Icon } from '../ui/icon.tsx'
import { FailureNotice } from '../ui/notice.tsx'
import { Card } from '../ui/page.tsx'
import type { InstallationPart } from './installation-view.tsx'

interface EditedField {
  /** Key of the row while it is edited. */
  key: number
  name: string
  label: string
  type: string
  required: boolean
  /** In characters; undefined means the default of the type. */
  maxLength?: number
}

type FormName = 'preChat' | 'offline'

const titles: Record<FormName, string> = { preChat: 'Pre-chat form', offline: 'Offline form' }
const capabilityOf = { preChat: 'preChatForm', offline: 'offlineForm' } as const
/** Field types with their default maximum length in characters. */
const types = [
  { type: 'text', text: 'Text', maxLength: 256 },
  { type: 'email', text: 'E-mail', maxLength: 254 },
  { type: 'tel', text: 'Telephone', maxLength: 32 },
  { type: 'textarea', text: 'Long text', maxLength: 4000 },
]
const maxFields = 20
const maxFieldLength = 4000

/** Fields of the two forms. Capabilities control whether the forms are shown. */
export function FormsCard(part: InstallationPart) {
  return (
    <Card title="Forms">
      <FormEditor form="preChat" {...part} />
      <FormEditor form="offline" {...part} />
    </Card>
  )
}

/** The fields that the installation stores. */
const storedField = ({ name, label, type, required, maxLength }: Omit<EditedField, 'key'>) => ({
  name,
  label,
  type,
  required,
  maxLength,
})

const clampLength = (length: number) => Math.min(maxFieldLength, Math.max(1, Math.trunc(length)))

let nextKey = 0

function FormEditor({ form, installation, onChanged }: InstallationPart & { form: FormName }) {
  const { api, announcer } = useConsole()
  const { busy, failure, run } = useAction()
  const saved = installation.forms?.[form]?.fields ?? []
  const [fields, setFields] = useState<EditedField[]>(() =>
    saved.map((field) => ({ key: nextKey++, ...storedField(field) })),
  )
  const set = (key: number, change: Partial<EditedField>) =>
    setFields(fields.map((field) => (field.key === key ? { ...field, ...change } : field)))
  const changed = JSON.stringify(fields.map(storedField)) !== JSON.stringify(saved.map(storedField))

  function move(index: number, step: number) {
    const moved = [...fields]
    const [field] = moved.splice(index, 1)
    moved.splice(index + step, 0, field!)
    setFields(moved)
  }

  function save(event: Event) {
    event.preventDefault()
    void run(async () => {
      const answer = await api.workspaces.updateInstallation({
        siteKey: installation.publicSiteKey,
        forms: { [form]: { fields: fields.map(storedField) } },
      })
      if (answer.installation) onChanged(answer.installation)
      announcer.say(`${titles[form]} saved.`)
    })
  }

  return (
    <form class="form-editor" onSubmit={save} noValidate aria-label={titles[form]}>
      <h3>{titles[form]}</h3>
      {!installation.capabilities?.[capabilityOf[form]] && (
        <p class="hint">Not shown to visitors: turned off under Capabilities.</p>
      )}
      {fields.length === 0 && <p class="hint">No fields yet.</p>}
      {fields.length > 0 && (
        <ol class="form-fields">
          {fields.map(({ key, name, label, type, required, maxLength }, index) => (
            <li key={key} class="form-field">
              <label>
                Label
                <input
                  class="input"
                  maxLength={128}
                  value={label}
                  onInput={(event) => set(key, { label: event.currentTarget.value })}
                />
              </label>
              <label>
                Lead field name
                <input
                  class="input mono"
                  maxLength={64}
                  value={name}
                  onInput={(event) => set(key, { name: event.currentTarget.value })}
                />
              </label>
              <label>
                Type
                <select class="input" value={type} onChange={(event) => set(key, { type: event.currentTarget.value })}>
                  {types.map((known) => (
                    <option key={known.type} value={known.type}>
                      {known.text}
                    </option>
                  ))}
                </select>
              </label>
              <label>
                Max length
                <input
                  class="input"
                  type="number"
                  min={1}
                  max={maxFieldLength}
                  step={1}
                  placeholder={String(types.find((known) => known.type === type)?.maxLength ?? '')}
                  value={maxLength ?? ''}
                  onInput={({ currentTarget: { value } }) =>
                    set(key, { maxLength: value === '' ? undefined : clampLength(Number(value)) })
                  }
                />
              </label>
              <label class="check">
                <input
                  type="checkbox"
                  checked={required}
                  onChange={(event) => set(key, { required: event.currentTarget.checked })}
                />
                Required
              </label>
              <div class="form-field-actions">
                <button
                  type="button"
                  class="icon-button"
                  aria-label={`Move ${label || 'field'} up`}
                  disabled={index === 0}
                  onClick={() => move(index, -1)}
                >
                  <Icon name="up" />
                </button>
                <button
                  type="button"
                  class="icon-button"
                  aria-label={`Move ${label || 'field'} down`}
                  disabled={index === fields.length - 1}
                  onClick={() => move(index, 1)}
                >
                  <Icon name="down" />
                </button>
                <button
                  type="button"
                  class="icon-button"
                  aria-label={`Remove ${label || 'field'}`}
                  onClick={() => setFields(fields.filter((field) => field.key !== key))}
                >
                  <Icon name="trash" />
                </button>
              </div>
            </li>
          ))}
        </ol>
      )}
      {failure && failure.issues.length > 0 ? (
        <ul class="field-error" role="alert">
          {failure.issues.map((issue) => (
            <li key={`${issue.path} ${issue.rule}`}>{issueText(issue)}</li>
          ))}
        </ul>
      ) : (
        <FailureNotice failure={failure} />
      )}
      <div class="button-row">
        <button
          type="button"
          class="button small"
          disabled={fields.length >= maxFields}
          onClick={() => setFields([...fields, { key: nextKey++, name: '', label: '', type: 'text', required: false }])}
        >
          <Icon name="plus" />
          Add field
          <span class="visually-hidden"> to the {titles[form].toLowerCase()}</span>
        </button>
        <button type="submit" class="button primary small" disabled={busy || !changed}>
          Save {titles[form].toLowerCase()}
        </button>
      </div>
    </form>
  )
}
