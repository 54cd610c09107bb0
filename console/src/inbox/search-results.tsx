import { Fragment } from 'preact'
import type { SearchResult } from '#proto/messaging/v1/messaging_pb.js'
import { useConsole } from '../console-context.ts'
import { authorName } from '../conversation/messages/messages.ts'
import { Avatar } from '../ui/avatar.tsx'
import { SelectField } from '../ui/form.tsx'
import { HiddenData } from '../ui/load.tsx'
import { Button, Empty, FailureNotice, Loading, When } from '../ui/page.tsx'
import { visitorName } from './conversation-record.ts'
import { StatusTags } from './conversation-row.tsx'

const assignees = [
  ['anyone', 'Anyone'],
  ['me', 'Me'],
  ['nobody', 'Nobody'],
] as const
const ages = [
  ['0', 'Any time'],
  ['1', 'Last 24 hours'],
  ['7', 'Last 7 days'],
  ['30', 'Last 30 days'],
  ['365', 'Last year'],
] as const

export function SearchFilters() {
  const { inbox, router } = useConsole()
  const { search } = inbox
  const { assignee, days } = search.query.value
  return (
    <div class="search-filters">
      <SelectField
        label="Assigned to"
        value={assignee}
        onChange={(value) => router.setFilter({ assignee: value })}
        options={assignees}
      />
      <SelectField
        label="Time"
        value={String(days)}
        onChange={(value) => router.setFilter({ days: value })}
        options={ages}
      />
    </div>
  )
}

/** The texts that the search has found, newest first. */
export function SearchResults({ openId, openMessage }: { openId?: string; openMessage?: number }) {
  const { inbox, announcer } = useConsole()
  const { search } = inbox
  const results = search.results.value
  return (
    <>
      <FailureNotice failure={search.failure.value} retry={search.retry} />
      <HiddenData scopes={['sessions:read', 'leads:read']} />
      {results.length > 0 && (
        <ul class="rows" aria-label="Search results">
          {results.map((result) => (
            <ResultRow
              key={keyOf(result)}
              result={result}
              open={
                result.conversation?.conversationId === openId &&
                result.source.case === 'messageSequence' &&
                result.source.value === openMessage
              }
            />
          ))}
        </ul>
      )}
      {search.loading.value && <Loading label="Searching" />}
      {results.length === 0 && !search.loading.value && !search.failure.value && !search.hasMore.value && (
        <Empty icon="search" title="No results">
          <p>Messages, notes, leads and names of signed-in visitors are searched. All words must be in one text.</p>
          <Button onClick={search.clear}>Clear search</Button>
        </Empty>
      )}
      {search.hasMore.value && !search.loading.value && (
        <Button
          kind="ghost more"
          onClick={() => search.more().then(() => announcer.say(`${search.results.peek().length} results.`))}
          text="Load more results"
        />
      )}
    </>
  )
}

const keyOf = ({ conversation, source, at, snippet }: SearchResult) =>
  [conversation?.conversationId, source.case, source.value, at?.seconds, at?.nanos, snippet].join(' ')

const kinds = { messageSequence: '', note: 'Note', visitor: 'Name', leadId: 'Lead' }

function ResultRow({ result, open }: { result: SearchResult; open: boolean }) {
  const { conversation, source, at, author } = result
  if (!conversation || source.case === undefined) return null
  const { inbox, router, session } = useConsole()
  const { conversationId } = conversation
  const name = visitorName(conversation)
  const from = authorName(author, session.displayName)
  return (
    <li>
      <a
        class="row"
        href={router.inFilter({
          conversationId,
          message: source.case === 'messageSequence' ? String(source.value) : undefined,
        })}
        aria-current={open ? 'true' : undefined}
      >
        <Avatar name={name} id={conversationId} presence={inbox.presenceOf(conversationId)} />
        <span class="row-text">
          <span class="row-top">
            <span class="row-name ellipsis">
              <bdi>{name}</bdi>
            </span>
            <When at={at} />
          </span>
          <span class="row-snippet" dir={from ? undefined : 'auto'}>
            {from && <span class="row-from">{from}: </span>}
            <bdi>
              <Snippet result={result} />
            </bdi>
          </span>
          <span class="row-bottom row-tags">
            {kinds[source.case] && <span class="tag">{kinds[source.case]}</span>}
            <StatusTags conversation={conversation} />
          </span>
        </span>
      </a>
    </li>
  )
}

function Snippet({ result: { snippet, highlights } }: { result: SearchResult }) {
  let at = 0
  const parts = highlights.map(({ start, end }) => {
    const before = snippet.slice(at, start)
    at = end
    return (
      <Fragment key={start}>
        {before}
        <mark>{snippet.slice(start, end)}</mark>
      </Fragment>
    )
  })
  return (
    <>
      {parts}
      {snippet.slice(at)}
    </>
  )
}
