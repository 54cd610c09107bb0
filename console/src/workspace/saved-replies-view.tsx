import { useConsole } from '../console-context.ts'
import { areaName } from '../router.ts'
import { DialogButton } from '../ui/dialog.tsx'
import { Form, TextField, useForm } from '../ui/form.tsx'
import { LoadedList, useLoad } from '../ui/load.tsx'
import { Button, Card, Page } from '../ui/page.tsx'

export function SavedRepliesView() {
  const { api } = useConsole()
  const loaded = useLoad(async () => (await api.messaging.listSavedReplies({})).replies, [])
  const form = useForm({
    start: { shortcut: '', body: '' },
    save: (reply) => api.messaging.saveReply(reply).then(loaded.reload),
    done: 'Reply saved.',
    clears: true,
  })
  function edit({ shortcut, body }: { shortcut: string; body: string }) {
    form.set({ shortcut, body })
    form.element.current!.querySelector('textarea')!.focus()
  }

  return (
    <Page
      title={areaName('replies')}
      lead="Type / and a shortcut in a reply to insert its text. Do not save personal data here."
    >
      <Card title="Add or change a reply">
        <Form form={form} button="Save reply" disabled={form.draft.shortcut === '' || form.draft.body.trim() === ''}>
          <TextField
            label="Shortcut"
            hint="Lower-case letters, digits and hyphens. A reply with the same shortcut is replaced."
            maxLength={32}
            {...form.field('shortcut')}
          />
          <TextField label="Text" rows={3} maxLength={4000} {...form.field('body')} />
        </Form>
      </Card>
      <LoadedList loaded={loaded} what="saved replies">
        {(reply) => (
          <li key={reply.shortcut} class="stack saved-reply">
            <strong>/{reply.shortcut}</strong>
            <span class="multi-line" dir="auto">
              {reply.body}
            </span>
            <div class="line">
              <Button kind="small" aria-label={`Edit /${reply.shortcut}`} onClick={() => edit(reply)} text="Edit" />
              <DialogButton
                button="Delete"
                label={`Delete /${reply.shortcut}`}
                title={`Delete /${reply.shortcut}?`}
                action="Delete reply"
                danger
                onConfirm={() => api.messaging.deleteSavedReply({ shortcut: reply.shortcut }).then(loaded.reload)}
                done="Reply deleted."
              >
                <p>Your whole team loses it.</p>
              </DialogButton>
            </div>
          </li>
        )}
      </LoadedList>
    </Page>
  )
}
