import { useState } from 'preact/hooks'
import { isComposing } from '../../../../browser/chat/composing.ts'
import { useAction } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { TextField } from '../../ui/field.tsx'
import { FailureNotice } from '../../ui/notice.tsx'

export interface CommandInput {
  purpose?: string
  url?: string
  label?: string
}

interface RequestFormProps {
  kind: 'screenshot' | 'navigation'
  origin: string
  onRequest: (input: CommandInput) => Promise<void>
  onCancel: () => void
}

/**
 * Form for a screenshot or navigation request. The visitor sees the text that the operator enters.
 */
export function RequestForm({ kind, origin, onRequest, onCancel }: RequestFormProps) {
  const { busy, failure, run } = useAction()
  const [purpose, setPurpose] = useState('')
  const [url, setUrl] = useState(`${origin}/`)
  const [label, setLabel] = useState('')
  const [urlError, setUrlError] = useState<string>()

  function submit(event: Event) {
    event.preventDefault()
    const isWrong = kind === 'navigation' && !/^https?:$/.test(URL.parse(url.trim())?.protocol ?? '')
    setUrlError(isWrong ? 'Enter a full URL that starts with http:// or https://.' : undefined)
    if (isWrong) return
    void run(() =>
      kind === 'screenshot'
        ? onRequest({ purpose: purpose.trim() || undefined })
        : onRequest({ url: url.trim(), label: label.trim() || undefined }),
    )
  }

  return (
    <form
      class="stack request-form"
      onSubmit={submit}
      onKeyDown={(event) => {
        if (event.key === 'Escape' && !isComposing(event)) onCancel()
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
      <div class="line">
        <Button type="submit" kind="primary small" disabled={busy}>
          Send request
        </Button>
        <Button kind="ghost small" onClick={onCancel}>
          Cancel
        </Button>
      </div>
    </form>
  )
}
