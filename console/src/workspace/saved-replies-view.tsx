import { areaName } from '../areas.ts'
import { useConsole } from '../console-context.ts'
import { ActionButton } from '../ui/dialog.tsx'
import { TextField } from '../ui/field.tsx'
import { Form, useForm } from '../ui/form.tsx'
import { useLoad } from '../ui/load.ts'
import { WhenLoaded } from '../ui/notice.tsx'
import { Card, Page } from '../ui/page.tsx'

/** The replies that operators insert with `/shortcut`. */
export function SavedRepliesView() {
  const { api, announcer } = useConsole()
  const loaded = useLoad(async () => (await api.messaging.listSavedReplies({})).replies, [])
  const form = useForm({
    start: { shortcut: '', body: '' },
    async save(reply) {
      await api.messaging.saveReply(reply)
      announcer.say('Reply saved.')
      await loaded.reload()
    },
    clears: true,
  })
  async function remove(shortcut: string) {
    await api.messaging.deleteSavedReply({ shortcut })
    await loaded.reload()
  }

  return (
    <Page
      title={areaName('replies')}
      lead="Type / and a shortcut in a reply to insert its text. Do not save personal data here."
    >
      <Card title="Add a reply">
        <Form form={form} button="Save reply" disabled={form.draft.shortcut === '' || form.draft.body.trim() === ''}>
          <TextField
            label="Shortcut"
            hint="Lower-case letters, digits and hyphens."
            maxLength={32}
            {...form.field('shortcut')}
          />
          <TextField label="Text" rows={3} maxLength={4000} {...form.field('body')} />
        </Form>
      </Card>
      <WhenLoaded loaded={loaded} name="saved replies">
        {(replies) =>
          replies.length > 0 && (
            <ul class="table">
              {replies.map((reply) => (
                <li key={reply.shortcut} class="saved-reply">
                  <strong>/{reply.shortcut}</strong>
                  <span class="multi-line" dir="auto">
                    {reply.body}
                  </span>
                  <ActionButton
                    aria-label={`Delete /${reply.shortcut}`}
                    act={() => remove(reply.shortcut)}
                    done="Reply deleted."
                  >
                    Delete
                  </ActionButton>
                </li>
              ))}
            </ul>
          )
        }
      </WhenLoaded>
    </Page>
  )
}
