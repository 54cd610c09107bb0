import { useState } from 'preact/hooks'
import { useAction } from '../ui/dialog.tsx'
import { TextField } from '../ui/field.tsx'
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
        <TextField
          label="What for"
          hint="The visitor reads this, and decides."
          maxLength={256}
          value={purpose}
          takesFocus
          onChange={setPurpose}
        />
      ) : (
        <>
          <TextField
            label="Address"
            hint={`On ${origin}, or on an origin that the installation allows.`}
            error={wrong}
            inputMode="url"
            maxLength={2048}
            value={url}
            takesFocus
            onChange={setUrl}
          />
          <TextField
            label="Label"
            hint="What the visitor is shown for it."
            maxLength={128}
            value={label}
            onChange={setLabel}
          />
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
