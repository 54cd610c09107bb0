import type { MessageInitShape } from '@bufbuild/protobuf'
import { useState } from 'preact/hooks'
import { type Erasure, ErasureState, type VisitorSchema } from '#proto/privacy/v1/privacy_pb.js'
import { saveText } from '../../../browser/chat/save-text.ts'
import { useConsole } from '../console-context.ts'
import { DialogButton } from '../ui/dialog.tsx'
import { type Loaded, useAction, useLoad, usePolling, WhenLoaded } from '../ui/load.tsx'
import { Button, Card, Fact, Facts, FailureNotice, Notice, When } from '../ui/page.tsx'

export interface Person {
  name: string
  by: NonNullable<MessageInitShape<typeof VisitorSchema>['by']>
}

const kindNames: [kind: string, label: string][] = [
  ['session', 'Sessions'],
  ['conversation', 'Conversations'],
  ['event', 'Messages and events'],
  ['lead', 'Leads'],
  ['delivery', 'Deliveries of leads'],
  ['command', 'Requests to the page'],
  ['screenshot', 'Screenshots'],
  ['ban', 'Bans'],
]
const pollMs = 1_000

/** Shows what is held about a person, saves it as a file, and erases it. */
export function PersonCard({ person: { name, by } }: { person: Person }) {
  const { api, announcer } = useConsole()
  const [erasure, setErasure] = useState<Erasure>()
  const held = useLoad(async () => {
    const lines: string[] = []
    for await (const { line } of api.privacy.exportVisitor({ visitor: { by } })) lines.push(line)
    return lines
  }, [])
  return (
    <Card
      title={name}
      focusable
      actions={
        !erasure && (
          <>
            <Button disabled={!held.value?.length} onClick={() => save(held.value!)}>
              Export
            </Button>
            <DialogButton
              button="Erase"
              kind="danger-quiet"
              isOff={!held.value?.length}
              title={`Erase ${name}?`}
              action="Erase for good"
              danger
              onConfirm={async () => {
                const answer = await api.privacy.eraseVisitor({ visitor: { by } })
                setErasure(answer.erasure)
                announcer.say('Erasure started.')
              }}
            >
              <p>
                Sessions, conversations with all their messages, and leads are removed within seconds. Open chats end.
                This cannot be undone. What was already sent to your destinations stays there.
              </p>
            </DialogButton>
          </>
        )
      }
    >
      {erasure ? <Progress first={erasure} /> : <Held held={held} />}
    </Card>
  )
}

function Held({ held }: { held: Loaded<string[]> }) {
  return (
    <WhenLoaded loaded={held} name="personal data">
      {(lines) => {
        const kinds = lines.map((line) => (JSON.parse(line) as { kind: string }).kind)
        return lines.length === 0 ? (
          <p>Nothing is held about this person.</p>
        ) : (
          <Facts>
            {kindNames.map(([kind, label]) => (
              <Fact key={kind} name={label}>
                {kinds.filter((each) => each === kind).length || undefined}
              </Fact>
            ))}
          </Facts>
        )
      }}
    </WhenLoaded>
  )
}

function Progress({ first }: { first: Erasure }) {
  const { api } = useConsole()
  const [erasure, setErasure] = useState(first)
  const { failure, run } = useAction()
  const isFinished = erasure.state === ErasureState.FINISHED
  const refresh = () =>
    run(async () => {
      const answer = await api.privacy.getErasure({ erasureId: first.erasureId })
      if (answer.erasure) setErasure(answer.erasure)
    })
  usePolling(refresh, isFinished ? undefined : pollMs)
  return (
    <div class="stack" role="status">
      {isFinished ? (
        <Notice tone="success">
          Erased. Finished at <When at={erasure.finishedAt} full />.
        </Notice>
      ) : (
        <Notice tone="info">
          {erasure.state === ErasureState.REMOVED
            ? 'All data is removed. A last pass in a minute removes what arrived meanwhile.'
            : 'Erasing…'}
        </Notice>
      )}
      <Facts>
        <Fact name="Erasure">
          <span class="mono breakable">{erasure.erasureId}</span>
        </Fact>
        <Fact name="Requested">
          <When at={erasure.requestedAt} full />, by {erasure.requestedBy}
        </Fact>
      </Facts>
      <FailureNotice failure={failure} />
    </div>
  )
}

/** Saves the data as a file with one JSON object in each line. */
const save = (lines: string[]) => saveText('personal-data.jsonl', 'application/x-ndjson', `${lines.join('\n')}\n`)
