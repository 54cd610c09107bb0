import { useState } from 'preact/hooks'
import { areaName } from '../areas.ts'
import { useConsole } from '../console-context.ts'
import { useAction } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import { useLoad } from '../ui/load.ts'
import { FailureNotice, WhenLoaded } from '../ui/notice.tsx'
import { Card, Page } from '../ui/page.tsx'

/** The replies that operators insert with `/shortcut`. */
export function SavedRepliesView() {
  const { api, announcer } = useConsole()
  const { busy, failure, run } = useAction()
  const loaded = useLoad(async () => (await api.messaging.listSavedReplies({})).replies, [])
  const [shortcut, setShortcut] = useState('')
  const [body, setBody] = useState('')

  const save = (event: Event) => {
    event.preventDefault()
    void run(async () => {
      await api.messaging.saveReply({ shortcut, body })
      announcer.say('Reply saved.')
      setShortcut('')
      setBody('')
      await loaded.reload()
    })
  }
  const remove = (name: string) =>
    run(async () => {
      await api.messaging.deleteSavedReply({ shortcut: name })
      announcer.say('Reply deleted.')
      await loaded.reload()
    })

  return (
    <Page
      title={areaName('replies')}
      lead="Type / and a shortcut in a reply to insert its text. Do not save personal data here."
    >
      <Card title="Add a reply">
        <form class="stack" onSubmit={save}>
          <TextField
            label="Shortcut"
            hint="Lower-case letters, digits and hyphens."
            value={shortcut}
            maxLength={32}
            onChange={setShortcut}
          />
          <TextField label="Text" rows={3} maxLength={4000} value={body} onChange={setBody} />
          <FailureNotice failure={failure} />
          <div class="line">
            <Button type="submit" kind="primary" disabled={busy || shortcut === '' || body.trim() === ''}>
              Save reply
            </Button>
          </div>
        </form>
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
                  <Button
                    kind="small"
                    disabled={busy}
                    aria-label={`Delete /${reply.shortcut}`}
                    onClick={() => remove(reply.shortcut)}
                  >
                    Delete
                  </Button>
                </li>
              ))}
            </ul>
          )
        }
      </WhenLoaded>
    </Page>
  )
}
