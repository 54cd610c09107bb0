import { useState } from 'preact/hooks'
import { useAction } from '../ui/dialog.tsx'
import { Field } from '../ui/field.tsx'
import { FailureNotice } from '../ui/notice.tsx'

export interface CommandInput {
  purpose?: string
  url?: string
  label?: string
}

/** What the visitor is asked for, in words that they will read. */
export function RequestForm({
  kind,
  origin,
  onRequest,
  onCancel,
}: {
  kind: 'screenshot' | 'navigation'
  origin: string
  onRequest: (input: CommandInput) => Promise<void>
  onCancel: () => void
}) {
  const { busy, failure, run } = useAction()
  const [purpose, setPurpose] = useState('')
  const [url, setUrl] = useState(`${origin}/`)
  const [label, setLabel] = useState('')
  const [wrong, setWrong] = useState<string>()

  function submit(event: Event) {
    event.preventDefault()
    if (kind === 'navigation' && !/^https?:$/.test(URL.parse(url.trim())?.protocol ?? '')) {
      setWrong('Write a whole address that begins with http:// or https://.')
      return
    }
    setWrong(undefined)
    void run(() =>
      kind === 'screenshot'
        ? onRequest({ purpose: purpose.trim() || undefined })
        : onRequest({ url: url.trim(), label: label.trim() || undefined }),
    )
  }

  return (
    <form
      class="request-form"
      onSubmit={submit}
      onKeyDown={({ key, isComposing }) => {
        if (key === 'Escape' && !isComposing) onCancel()
      }}
      noValidate
    >
      {kind === 'screenshot' ? (
        <Field label="What for" hint="The visitor reads this, and decides.">
          {(attributes) => (
            <input
              {...attributes}
              class="input"
              maxLength={256}
              value={purpose}
              ref={focusOnce}
              onInput={(event) => setPurpose(event.currentTarget.value)}
            />
          )}
        </Field>
      ) : (
        <>
          <Field label="Address" hint={`On ${origin}, or on an origin that the installation allows.`} error={wrong}>
            {(attributes) => (
              <input
                {...attributes}
                class="input"
                type="url"
                maxLength={2048}
                value={url}
                ref={focusOnce}
                onInput={(event) => setUrl(event.currentTarget.value)}
              />
            )}
          </Field>
          <Field label="Label" hint="What the visitor is shown for it.">
            {(attributes) => (
              <input
                {...attributes}
                class="input"
                maxLength={128}
                value={label}
                onInput={(event) => setLabel(event.currentTarget.value)}
              />
            )}
          </Field>
        </>
      )}
      <FailureNotice failure={failure} />
      <div class="button-row">
        <button type="submit" class="button primary small" disabled={busy}>
          {kind === 'screenshot' ? 'Ask for it' : 'Ask to go there'}
        </button>
        <button type="button" class="button ghost small" onClick={onCancel}>
          Cancel
        </button>
      </div>
    </form>
  )
}

const focusedOnce = new WeakSet<HTMLElement>()
function focusOnce(element: HTMLElement | null) {
  if (!element || focusedOnce.has(element)) return
  focusedOnce.add(element)
  element.focus()
}
