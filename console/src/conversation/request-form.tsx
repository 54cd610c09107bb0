import { useState } from 'preact/hooks'
import { useAction } from '../ui/dialog.tsx'
import { TextField } from '../ui/field.tsx'
import { FailureNotice } from '../ui/notice.tsx'

export interface CommandInput {
  purpose?: string
  url?: string
  label?: string
}

/** Form for a screenshot or navigation request. The visitor sees its text. */
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
  const [urlError, setUrlError] = useState<string>()

  function submit(event: Event) {
    event.preventDefault()
    if (kind === 'navigation' && !/^https?:$/.test(URL.parse(url.trim())?.protocol ?? '')) {
      setUrlError('Enter a full URL that starts with http:// or https://.')
      return
    }
    setUrlError(undefined)
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
          label="Purpose"
          hint="Shown to the visitor, who allows or denies the request."
          maxLength={256}
          value={purpose}
          takesFocus
          onChange={setPurpose}
        />
      ) : (
        <>
          <TextField
            label="URL"
            hint={`Must be on ${origin} or another allowed origin.`}
            error={urlError}
            inputMode="url"
            maxLength={2048}
            value={url}
            takesFocus
            onChange={setUrl}
          />
          <TextField label="Label" hint="Shown to the visitor." maxLength={128} value={label} onChange={setLabel} />
        </>
      )}
      <FailureNotice failure={failure} />
      <div class="button-row">
        <button type="submit" class="button primary small" disabled={busy}>
          Send request
        </button>
        <button type="button" class="button ghost small" onClick={onCancel}>
          Cancel
        </button>
      </div>
    </form>
  )
}
