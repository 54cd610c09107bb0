import { useRef, useState } from 'preact/hooks'
import type { Conversation } from '#proto/messaging/v1/messaging_pb.js'
import { areaName } from '../areas.ts'
import { useConsole } from '../console-context.ts'
import { visitorName } from '../inbox/conversation-record.ts'
import { Avatar } from '../ui/avatar.tsx'
import { TextField } from '../ui/form.tsx'
import { HiddenData } from '../ui/hidden-data.tsx'
import { useAction } from '../ui/load.tsx'
import { Button, Card, Empty, FailureNotice, Page, RowText, When } from '../ui/page.tsx'
import { type Person, PersonCard } from './person-card.tsx'

interface Found {
  text: string
  conversations: Conversation[]
}

/** Finds a person and shows, exports or erases their data. */
export function PeopleView() {
  const { api, announcer } = useConsole()
  const [text, setText] = useState('')
  const [found, setFound] = useState<Found>()
  const [person, setPerson] = useState<Person>()
  const { busy, failure, run } = useAction()
  const heading = useRef<HTMLDivElement>(null)

  const search = () =>
    run(async () => {
      const query = text.trim()
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
        <form
          class="bar"
          noValidate
          onSubmit={(event) => {
            event.preventDefault()
            if (text.trim() !== '') void search()
          }}
        >
          <TextField
            label="E-mail address, name or visitor id"
            maxLength={200}
            value={text}
            takesFocus
            onChange={setText}
          />
          <Button type="submit" kind="primary" disabled={busy || text.trim() === ''}>
            Search
          </Button>
        </form>
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
    >
      Look up as a visitor id
    </Button>
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
