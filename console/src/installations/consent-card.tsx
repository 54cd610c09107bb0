import { Form, TextField, Toggle, useForm } from '../ui/form.tsx'
import { Card } from '../ui/page.tsx'
import { type InstallationPart, useUpdate } from './update.ts'

/** Edits the consent that visitors must give before they write. */
export function ConsentCard(part: InstallationPart) {
  const { required = false, policyUrl = '', policyVersion = '' } = part.installation.consent ?? {}
  const { update } = useUpdate(part)
  const form = useForm({
    start: { required, policyUrl, policyVersion },
    problemsOf(draft) {
      if (!draft.required && `${draft.policyUrl}${draft.policyVersion}`.trim() === '') return {}
      const isHttps = URL.parse(draft.policyUrl.trim())?.protocol === 'https:'
      return {
        policyUrl: isHttps ? undefined : 'Enter an https address.',
        policyVersion: draft.policyVersion.trim() === '' ? 'Enter a version.' : undefined,
      }
    },
    save: (draft) =>
      update(
        { consent: { ...draft, policyUrl: draft.policyUrl.trim(), policyVersion: draft.policyVersion.trim() } },
        'Consent saved.',
      ),
  })
  return (
    <Card title="Consent">
      <Form form={form}>
        <Toggle
          label="Require consent"
          hint="Visitors must agree before they send a message or a form. They can always read."
          disabled={form.busy}
          {...form.toggle('required')}
        />
        <TextField label="Policy URL" inputMode="url" maxLength={2048} {...form.field('policyUrl')} />
        <TextField
          label="Policy version"
          hint="A new version asks every visitor again, also in open chats."
          maxLength={64}
          {...form.field('policyVersion')}
        />
      </Form>
    </Card>
  )
}
