import { Form, minutesProblem, TextField, Toggle, useForm } from '../ui/form.tsx'
import { Card } from '../ui/page.tsx'
import { type InstallationPart, useUpdate } from './update.ts'

/** Edits what happens with answers that a visitor has not seen. */
export function UnseenCard(part: InstallationPart) {
  const { unseenAfterMinutes = 0, mailUnseenAnswers = false } = part.installation
  const { update } = useUpdate(part)
  const form = useForm({
    start: { minutes: String(unseenAfterMinutes), mailUnseenAnswers },
    problemsOf: ({ minutes }) => ({ minutes: minutesProblem(minutes, 1440) }),
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
