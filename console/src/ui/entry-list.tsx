import { useId, useRef, useState } from 'preact/hooks'
import { useOneLine } from '../../../contract/line-ends.ts'
import { useAction } from './action.ts'
import { Button, IconButton } from './button.tsx'
import { Field } from './field.tsx'
import { afterPress } from './press.ts'

interface EntryListProps {
  label: string
  hint: string
  placeholder: string
  entries: readonly string[]
  /** Returns the entry that a typed text means. */
  read?: (text: string) => string
  /** Returns the problem with a new entry, or undefined. */
  problemOf: (entry: string) => string | undefined
  /**
   * May resolve to false if the entries are not stored. The new entry is then put back into the
   * field. Until it resolves, no other change is accepted, because it would undo this one.
   */
  onChange: (entries: string[]) => unknown
  suggestions?: readonly string[]
  /** Whether a typed entry is added when the field loses the focus. If false, it is dropped. */
  addsOnBlur?: boolean
}

/** An editable list of short entries. */
export function EntryList({
  label,
  hint,
  placeholder,
  entries,
  read = (text) => text,
  problemOf,
  onChange,
  suggestions = [],
  addsOnBlur = true,
}: EntryListProps) {
  const listId = useId()
  const input = useRef<HTMLInputElement>(null)
  const [problem, setProblem] = useState<string>()
  const { busy, run } = useAction()

  /** Resolves to false if the change is not stored, also because another change is being stored. */
  async function change(changed: string[]): Promise<boolean> {
    let stored: unknown
    const hasRun = await run(async () => {
      stored = await onChange(changed)
    })
    return hasRun && stored !== false
  }

  /** Adds the typed entry, if it is valid. */
  async function add() {
    const field = input.current
    // The operator has left the view.
    if (!field) return
    const entry = read(useOneLine(field.value).trim())
    const wrong = entry === '' ? undefined : entries.includes(entry) ? 'Already in the list.' : problemOf(entry)
    setProblem(wrong)
    // Makes the form invalid, so that it is not saved without the entry.
    field.setCustomValidity(wrong ?? '')
    if (entry === '' || wrong !== undefined) return
    field.value = ''
    if (!(await change([...entries, entry])) && field.value === '') field.value = entry
  }

  function addAndStay() {
    void add()
    input.current!.focus()
  }

  function remove(entry: string) {
    void change(entries.filter((other) => other !== entry))
    input.current!.focus()
  }

  return (
    <Field label={label} hint={hint} error={problem}>
      {(attributes) => (
        <>
          {entries.length > 0 && (
            <ul class="entries">
              {entries.map((entry) => (
                <li key={entry}>
                  <span class="mono breakable" dir="auto">
                    {entry}
                  </span>
                  <IconButton icon="close" label={`Remove ${entry}`} disabled={busy} onClick={() => remove(entry)} />
                </li>
              ))}
            </ul>
          )}
          <div class="copy-row">
            <input
              {...attributes}
              ref={input}
              class="input"
              placeholder={placeholder}
              list={suggestions.length > 0 ? listId : undefined}
              autocomplete="off"
              spellcheck={false}
              // A typed entry is added when the field loses the focus, so that saving does not drop it.
              onBlur={addsOnBlur ? () => afterPress(() => void add()) : undefined}
              onKeyDown={(event) => {
                if (event.key !== 'Enter') return
                event.preventDefault()
                addAndStay()
              }}
            />
            <datalist id={listId}>
              {suggestions
                .filter((known) => !entries.includes(known))
                .map((known) => (
                  <option key={known} value={known} />
                ))}
            </datalist>
            <Button disabled={busy} onClick={addAndStay}>
              Add<span class="visually-hidden"> to {label}</span>
            </Button>
          </div>
        </>
      )}
    </Field>
  )
}
