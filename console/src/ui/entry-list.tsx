import { useId, useRef, useState } from 'preact/hooks'
import { Icon } from './icon.tsx'

/** An editable list of short entries. */
export function EntryList({
  label,
  hint,
  placeholder,
  entries,
  problemOf,
  onChange,
  suggestions = [],
}: {
  label: string
  hint?: string
  placeholder?: string
  entries: readonly string[]
  /** Returns the problem with a new entry, or undefined. */
  problemOf: (entry: string) => string | undefined
  onChange: (entries: string[]) => void
  suggestions?: readonly string[]
}) {
  const id = useId()
  const input = useRef<HTMLInputElement>(null)
  const [problem, setProblem] = useState<string>()

  function add() {
    const entry = input.current!.value.trim()
    if (entry === '') return
    const wrong = entries.includes(entry) ? 'Already in the list.' : problemOf(entry)
    setProblem(wrong)
    if (wrong === undefined) {
      onChange([...entries, entry])
      input.current!.value = ''
    }
    input.current!.focus()
  }

  const described = [hint && `${id}-hint`, problem && `${id}-problem`].filter(Boolean).join(' ')
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {entries.length > 0 && (
        <ul class="entries">
          {entries.map((entry) => (
            <li key={entry}>
              <span class="mono breakable">{entry}</span>
              <button
                type="button"
                class="icon-button"
                aria-label={`Remove ${entry}`}
                onClick={() => {
                  onChange(entries.filter((other) => other !== entry))
                  input.current!.focus()
                }}
              >
                <Icon name="close" />
              </button>
            </li>
          ))}
        </ul>
      )}
      <div class="copy-row">
        <input
          id={id}
          ref={input}
          class="input"
          placeholder={placeholder}
          aria-describedby={described || undefined}
          aria-invalid={problem !== undefined}
          list={suggestions.length > 0 ? `${id}-known` : undefined}
          autocomplete="off"
          spellcheck={false}
          onKeyDown={(event) => {
            if (event.key !== 'Enter') return
            event.preventDefault()
            add()
          }}
        />
        {suggestions.length > 0 && (
          <datalist id={`${id}-known`}>
            {suggestions
              .filter((known) => !entries.includes(known))
              .map((known) => (
                <option key={known} value={known} />
              ))}
          </datalist>
        )}
        <button type="button" class="button" onClick={add}>
          Add
          <span class="visually-hidden"> to {label}</span>
        </button>
      </div>
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {problem && (
        <p class="field-error" id={`${id}-problem`} role="alert">
          {problem}
        </p>
      )}
    </div>
  )
}
