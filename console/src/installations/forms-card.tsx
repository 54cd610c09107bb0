import { usualFields } from '../../../browser/chat/usual-fields.ts'
import { fieldWords } from '../failures.ts'
import { inSentence } from '../language.ts'
import { editList, Form, keyed, SelectField, TextField, useForm, withoutKey } from '../ui/form.tsx'
import { Button, Card, IconButton } from '../ui/page.tsx'
import { type InstallationPart, useUpdate } from './update.ts'

interface EditedField {
  key: number
  name: string
  label: string
  type: string
  required: boolean
  /** Maximum number of characters. If undefined, the default of the field type applies. */
  maxLength?: number
}

const typeNames = [
  ['text', 'Text'],
  ['email', 'E-mail'],
  ['tel', 'Telephone'],
  ['textarea', 'Long text'],
] as const
/** Default maximum number of characters by field type. */
const defaultLengths: Record<string, number> = { text: 256, email: 254, tel: 32, textarea: 4000 }
const newField = { name: '', label: '', type: 'text', required: false }
const maxFields = 20
const maxFieldLength = 4000

/** Edits the fields of the forms. Capabilities decide whether visitors see them. */
export function FormsCard(part: InstallationPart) {
  return (
    <Card title="Fields">
      <p class="hint">Visitors read the labels Name, E-mail and Message in their own language.</p>
      <FormEditor form="preChat" {...part} />
      <FormEditor form="offline" {...part} />
    </Card>
  )
}

function FormEditor({ form: name, ...part }: InstallationPart & { form: keyof typeof usualFields }) {
  const { forms: savedForms, capabilities } = part.installation
  const { update } = useUpdate(part)
  const title = fieldWords([name])
  const form = useForm({
    start: (): { fields: EditedField[] } => ({
      fields: (savedForms?.[name]?.fields ?? []).map(({ $typeName: _, ...field }) => keyed(field)),
    }),
    save: ({ fields }) => {
      const named = fields.map((field) => ({ ...withoutKey(field), name: nameOf(field) }))
      return update({ forms: { [name]: { fields: named } } }, `${title} saved.`)
    },
  })
  const { fields } = form.draft
  const setFields = (next: EditedField[]) => form.set({ fields: next })
  const edit = editList(fields, setFields)

  return (
    <Form form={form} class="stack form-editor" label={title}>
      <h3>{title}</h3>
      {!capabilities?.[`${name}Form`] && <p class="hint">Not shown to visitors: turned off above.</p>}
      {fields.length === 0 && <p class="hint">No fields yet.</p>}
      <ol class="stack">
        {fields.map((field, index) => {
          const { key, name, label, type, required, maxLength } = field
          const change = (changed: Partial<EditedField>) => edit.change(index, changed)
          const move = (step: number) => setFields(fields.toSpliced(index, 1).toSpliced(index + step, 0, field))
          const clamp = (length: number) => Math.min(maxFieldLength, Math.max(1, Math.trunc(length)))
          return (
            <li key={key} class="form-field">
              <TextField label="Label" maxLength={128} value={label} onChange={(value) => change({ label: value })} />
              <SelectField
                label="Type"
                value={type}
                options={typeNames}
                onChange={(value) => change({ type: value })}
              />
              <label class="line check">
                <input
                  type="checkbox"
                  checked={required}
                  onChange={(event) => change({ required: event.currentTarget.checked })}
                />
                Required
              </label>
              <div class="form-field-actions">
                <IconButton
                  icon="up"
                  label={`Move ${label || 'this field'} up`}
                  disabled={index === 0}
                  onClick={() => move(-1)}
                />
                <IconButton
                  icon="down"
                  label={`Move ${label || 'this field'} down`}
                  disabled={index === fields.length - 1}
                  onClick={() => move(1)}
                />
                <IconButton icon="trash" label={`Remove ${label || 'this field'}`} onClick={() => edit.remove(index)} />
              </div>
              <details>
                <summary>More</summary>
                <div class="bar">
                  <TextField
                    label="Name in leads"
                    class="input mono"
                    maxLength={64}
                    placeholder={nameOf(field)}
                    value={name}
                    onChange={(value) => change({ name: value })}
                  />
                  <TextField
                    label="Max length"
                    type="number"
                    min={1}
                    max={maxFieldLength}
                    placeholder={String(defaultLengths[type] ?? '')}
                    value={maxLength ?? ''}
                    onChange={(value) => change({ maxLength: value === '' ? undefined : clamp(Number(value)) })}
                  />
                </div>
              </details>
            </li>
          )
        })}
      </ol>
      <div class="line">
        {fields.length === 0 && (
          <Button kind="small" onClick={() => edit.add(...usualFields[name].map(keyed))}>
            Use the usual fields
            <span class="visually-hidden"> in the {inSentence(title)}</span>
          </Button>
        )}
        <Button
          kind="small"
          icon="plus"
          disabled={fields.length >= maxFields}
          onClick={() => edit.add(keyed(newField))}
        >
          Add field
          <span class="visually-hidden"> to the {inSentence(title)}</span>
        </Button>
      </div>
    </Form>
  )
}

/** Returns the name that a field has in leads. If the team gave none, it is made from the label. */
const nameOf = ({ name, label }: EditedField) =>
  name ||
  label
    .normalize('NFKD')
    .replace(/[^\w -]/g, '')
    .trim()
    .replace(/ +/g, '_')
    .toLowerCase()
    .slice(0, 64)
