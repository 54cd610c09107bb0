import { Form, numberProblem, TextField, Toggle, useForm } from '../ui/form.tsx'
import { Card } from '../ui/page.tsx'
import { type InstallationPart, useUpdate } from './update.ts'

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

export function UnseenCard(part: InstallationPart) {
  const { unseenAfterMinutes = 0, mailUnseenAnswers = false } = part.installation
  const { update } = useUpdate(part)
  const form = useForm({
    start: { minutes: String(unseenAfterMinutes), mailUnseenAnswers },
    problemsOf: ({ minutes }) => ({ minutes: numberProblem(minutes, 0, 1440, ' minutes') }),
    save: ({ minutes, ...draft }) => update({ unseenAfterMinutes: Number(minutes), ...draft }, 'Unseen answers saved.'),
  })
  return (
    <Card title="Unseen answers">
      <Form form={form}>
        <TextField
          label="Minutes until an answer counts as unseen"
          hint="0 for never."
          inputMode="numeric"
          maxLength={4}
          {...form.field('minutes')}
        />
        <Toggle
          label="Mail unseen answers"
          hint="To visitors who left an address in a form, with your consent rules. Needs a mail server. Say in the form that you answer by mail."
          disabled={form.busy}
          {...form.toggle('mailUnseenAnswers')}
        />
      </Form>
    </Card>
  )
}
