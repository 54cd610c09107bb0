import type { MessageInitShape } from '@bufbuild/protobuf'
import { useRef, useState } from 'preact/hooks'
import type { Conversation } from '#proto/messaging/v1/messaging_pb.js'
import { type Erasure, ErasureState, type VisitorSchema } from '#proto/privacy/v1/privacy_pb.js'
import { saveText } from '../../../browser/chat/save-text.ts'
import { useConsole } from '../console-context.ts'
import { visitorName } from '../inbox/conversation-record.ts'
import { areaName } from '../router.ts'
import { Avatar } from '../ui/avatar.tsx'
import { DialogButton } from '../ui/dialog.tsx'
import { SearchBar } from '../ui/form.tsx'
import { HiddenData, useAction, useLoad, usePolling, WhenLoaded } from '../ui/load.tsx'
import { Button, Card, Empty, Facts, FailureNotice, Notice, Page, RowText, When } from '../ui/page.tsx'

interface Found {
  text: string
  conversations: Conversation[]
}

export function PeopleView() {
  const { api, announcer } = useConsole()
  const [found, setFound] = useState<Found>()
  const [person, setPerson] = useState<Person>()
  const { busy, failure, run } = useAction()
  const heading = useRef<HTMLDivElement>(null)

  const search = (query: string) =>
    run(async () => {
      const { results } = await api.messaging.searchConversations({ query, limit: 50 })
      const bySession = new Map(
        results.flatMap(({ conversation }) => (conversation ? [[conversation.sessionId, conversation]] : [])),
      )
      setPerson(undefined)
      setFound({ text: query, conversations: [...bySession.values()] })
      announcer.say(`${bySession.size} found.`)
    })

  function choose(chosen: Person) {
    setPerson(chosen)
    requestAnimationFrame(() => heading.current?.querySelector<HTMLElement>('h2')?.focus())
  }

  return (
    <Page title={areaName('people')} lead="Answer a person who asks what you hold about them, or asks you to erase it.">
      <Card title="Find a person">
        <SearchBar
          label="E-mail address, name or visitor id"
          maxLength={200}
          kind="primary"
          takesFocus
          busy={busy}
          onSearch={search}
        />
        <HiddenData scopes={['sessions:read', 'leads:read']} />
        <FailureNotice failure={failure} />
        {found && <Results {...found} onChosen={choose} />}
      </Card>
      <div ref={heading}>{person && <PersonCard key={JSON.stringify(person.by)} person={person} />}</div>
    </Page>
  )
}

function Results({ text, conversations, onChosen }: Found & { onChosen: (person: Person) => void }) {
  const asSubject = (
    <Button
      kind="small"
      onClick={() => onChosen({ name: text, by: { case: 'subject', value: { externalSubject: text } } })}
      text="Look up as a visitor id"
    />
  )
  if (conversations.length === 0)
    return (
      <Empty icon="search" title="Nobody found">
        <p>Forms, messages and names of signed-in visitors are searched.</p>
        {asSubject}
      </Empty>
    )
  return (
    <>
      <ul class="table" aria-label="People found">
        {conversations.map((conversation) => {
          const { conversationId, sessionId, contact, visitor, lastMessageAt } = conversation
          const name = visitorName(conversation)
          return (
            <li key={sessionId}>
              <button
                type="button"
                class="table-row"
                onClick={() => onChosen({ name, by: { case: 'sessionId', value: sessionId } })}
              >
                <Avatar name={name} id={conversationId} />
                <RowText title={name}>{visitor?.externalSubject || contact?.email || 'Anonymous visitor'}</RowText>
                <When at={lastMessageAt} />
              </button>
            </li>
          )
        })}
      </ul>
      <div class="line">{asSubject}</div>
    </>
  )
}

interface Person {
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

function PersonCard({ person: { name, by } }: { person: Person }) {
  const { api } = useConsole()
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
            <Button disabled={!held.value?.length} onClick={() => save(held.value!)} text="Export" />
            <DialogButton
              button="Erase"
              kind="danger-quiet"
              isOff={!held.value?.length}
              title={`Erase ${name}?`}
              action="Erase for good"
              danger
              onConfirm={async () => setErasure((await api.privacy.eraseVisitor({ visitor: { by } })).erasure)}
              done="Erasure started."
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
      {erasure ? (
        <Progress first={erasure} />
      ) : (
        <WhenLoaded loaded={held} what="personal data">
          {(lines) => {
            const kinds = lines.map((line) => (JSON.parse(line) as { kind: string }).kind)
            return lines.length === 0 ? (
              <p>Nothing is stored about this person.</p>
            ) : (
              <Facts
                of={kindNames.map(([kind, label]) => [
                  label,
                  kinds.filter((each) => each === kind).length || undefined,
                ])}
              />
            )
          }}
        </WhenLoaded>
      )}
    </Card>
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
      <Facts
        of={[
          ['Erasure', <code>{erasure.erasureId}</code>],
          ['Requested', [<When key="at" at={erasure.requestedAt} full />, `, by ${erasure.requestedBy}`]],
        ]}
      />
      <FailureNotice failure={failure} />
    </div>
  )
}

/** Saves the data as a file with one JSON object in each line. */
const save = (lines: string[]) => saveText('personal-data.jsonl', 'application/x-ndjson', `${lines.join('\n')}\n`)
