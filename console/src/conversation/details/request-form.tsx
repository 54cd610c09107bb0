import { isComposing } from '../../../../browser/chat/composing.ts'
import { Form, TextField, useForm } from '../../ui/form.tsx'
import { Button } from '../../ui/page.tsx'

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
  const form = useForm({
    start: { purpose: '', url: `${origin}/`, label: '' },
    problemsOf: ({ url }) => ({
      url:
        kind === 'screenshot' || /^https?:$/.test(URL.parse(url.trim())?.protocol ?? '')
          ? undefined
          : 'Enter a full URL that starts with http:// or https://.',
    }),
    save: ({ purpose, url, label }) =>
      onRequest(
        kind === 'screenshot'
          ? { purpose: purpose.trim() || undefined }
          : { url: url.trim(), label: label.trim() || undefined },
      ),
  })
  return (
    <Form
      form={form}
      class="stack request-form"
      button="Send request"
      kind="primary small"
      onKeyDown={(event) => {
        if (event.key === 'Escape' && !isComposing(event)) onCancel()
      }}
      actions={
        <Button kind="ghost small" onClick={onCancel}>
          Cancel
        </Button>
      }
    >
      {kind === 'screenshot' ? (
        <TextField
          label="Purpose"
          hint="Shown to the visitor, who allows or denies the request."
          maxLength={256}
          takesFocus
          {...form.field('purpose')}
        />
      ) : (
        <>
          <TextField
            label="URL"
            hint={`Must be on ${origin} or another allowed address.`}
            inputMode="url"
            maxLength={2048}
            takesFocus
            {...form.field('url')}
          />
          <TextField label="Label" hint="Shown to the visitor." maxLength={128} {...form.field('label')} />
        </>
      )}
    </Form>
  )
}
