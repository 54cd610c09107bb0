import { useEffect, useRef } from 'preact/hooks'
import { useConsole } from '../console-context.ts'
import { ConversationView } from '../conversation/conversation-view.tsx'
import { conversationPath, pathOf } from '../router.ts'
import { Button } from '../ui/button.tsx'
import { Icon } from '../ui/icon.tsx'
import { useLoad } from '../ui/load.ts'
import { Empty, FailureNotice, Loading } from '../ui/notice.tsx'
import { useRowKeys } from '../ui/row-keys.ts'
import { ConversationRow } from './conversation-row.tsx'
import type { Queue } from './inbox-merge.ts'
import { SearchFilters, SearchResults } from './search-results.tsx'

/**
 * Shows the list of conversations beside the open one. On a phone, the list and the conversation
 * are separate pages.
 */
interface InboxViewProps {
  conversationId?: string
  details?: boolean
  /** Sequence of the message that the conversation shows first. */
  message?: number
}

export function InboxView({ conversationId, details = false, message }: InboxViewProps) {
  const { inbox } = useConsole()
  return (
    <div class={conversationId === undefined ? 'inbox' : `inbox open${details ? ' details-open' : ''}`}>
      <h1 class="visually-hidden" tabIndex={-1}>
        Inbox
      </h1>
      <ConversationList openId={conversationId} openMessage={message} />
      {conversationId === undefined ? (
        <div class="thread thread-empty">
          {inbox.shown.value.length > 0 && (
            <Empty icon="inbox" title="No conversation selected">
              <p>Select one from the list.</p>
              <p>
                <kbd>n</kbd> opens the one that waits longest.
              </p>
            </Empty>
          )}
        </div>
      ) : (
        <ConversationView key={conversationId} conversationId={conversationId} details={details} message={message} />
      )}
    </div>
  )
}

const statuses = { open: 'Open', closed: 'Closed', all: 'All' } as const
const queues: [queue: Queue, label: string][] = [
  ['unanswered', 'Unanswered'],
  ['mine', 'Mine'],
  ['unassigned', 'Unassigned'],
  ['open', 'All'],
  ['closed', 'Closed'],
]

interface ConversationListProps {
  openId: string | undefined
  openMessage: number | undefined
}

function ConversationList({ openId, openMessage }: ConversationListProps) {
  const { inbox, shortcuts, router, announcer } = useConsole()
  const list = useRef<HTMLElement>(null)
  const field = useRef<HTMLInputElement>(null)
  const { search } = inbox
  const searches = search.isActive.value

  useRowKeys('.conversations .rows a')
  useEffect(() => {
    return shortcuts.bind({
      n: () => void openNext(),
      '/': () => {
        // On a phone, the search field is on the page of the list, so go there first.
        if (field.current?.offsetParent === null) router.go(pathOf({ view: 'inbox' }))
        requestAnimationFrame(() => field.current?.focus())
      },
    })
  }, [shortcuts, openId])

  /** Opens the conversation that waits longest. */
  async function openNext() {
    const next = await inbox.nextUnanswered(openId).catch(() => undefined)
    if (next) router.go(conversationPath(next))
    else announcer.say('No other conversation waits for an answer.')
  }

  return (
    <section class="conversations" aria-label="Conversations" ref={list}>
      <header class="conversations-head">
        <p class="list-title" aria-hidden="true">
          Inbox
        </p>
        <div class="search">
          <Icon name="search" />
          <input
            ref={field}
            type="search"
            class="input"
            aria-label="Search messages, notes, leads and names"
            placeholder="Search"
            maxLength={200}
            value={search.query.value.text}
            onInput={(event) => search.change({ text: event.currentTarget.value })}
            onKeyDown={(event) => {
              if (event.key === 'ArrowDown' || event.key === 'Enter') {
                event.preventDefault()
                list.current?.querySelector<HTMLElement>('.rows a')?.focus()
              } else if (event.key === 'Escape') {
                search.clear()
                event.currentTarget.blur()
              }
            }}
          />
          <span class="key-hint" aria-hidden="true">
            /
          </span>
        </div>
        {searches ? (
          <>
            <fieldset class="segments">
              <legend class="visually-hidden">Conversation status</legend>
              {(['open', 'closed', 'all'] as const).map((status) => (
                <label key={status}>
                  <input
                    type="radio"
                    name="status"
                    checked={search.query.value.status === status}
                    onChange={() => search.change({ status })}
                  />
                  <span>{statuses[status]}</span>
                </label>
              ))}
            </fieldset>
            <SearchFilters />
          </>
        ) : (
          <>
            <Queues />
            <TagFilter />
          </>
        )}
      </header>
      {searches ? <SearchResults openId={openId} openMessage={openMessage} /> : <LoadedConversations openId={openId} />}
    </section>
  )
}

function Queues() {
  const { inbox } = useConsole()
  const counts = inbox.counts.value
  return (
    <fieldset class="queues">
      <legend class="visually-hidden">Queue</legend>
      {queues.map(([queue, label]) => {
        const count = queue === 'closed' ? 0 : (counts?.[queue] ?? 0)
        return (
          <label key={queue} class="chip">
            <input
              type="radio"
              name="queue"
              checked={inbox.queue.value === queue}
              onChange={() => {
                inbox.queue.value = queue
              }}
            />
            <span>
              {label}
              {count > 0 && (
                <b class="queue-count" key={count}>
                  {countText(count)}
                </b>
              )}
            </span>
          </label>
        )
      })}
    </fieldset>
  )
}

/** Limits the list to a tag. Hidden if the workspace has no tags. */
function TagFilter() {
  const { inbox, api } = useConsole()
  const known = useLoad(async () => (await api.messaging.listTags({})).tags, [])
  const chosen = inbox.tag.value
  const tags = new Set([...(chosen ? [chosen] : []), ...(known.value ?? [])])
  if (tags.size === 0) return null
  return (
    <select
      class="input"
      aria-label="Tag"
      value={chosen}
      onFocus={() => void known.reload()}
      onChange={(event) => {
        inbox.tag.value = event.currentTarget.value
      }}
    >
      <option value="">All tags</option>
      {[...tags].map((tag) => (
        <option key={tag} value={tag}>
          {tag}
        </option>
      ))}
    </select>
  )
}

/** The loaded conversations of the queue. */
function LoadedConversations({ openId }: { openId: string | undefined }) {
  const { inbox, session, announcer } = useConsole()
  const shown = inbox.shown.value
  return (
    <>
      <FailureNotice failure={inbox.failure.value} retry={() => void inbox.reload()} />
      {shown.length > 0 && (
        <ul class="rows">
          {shown.map((entry) => (
            <ConversationRow
              key={entry.conversation.conversationId}
              entry={entry}
              open={entry.conversation.conversationId === openId}
              me={session.displayName}
            />
          ))}
        </ul>
      )}
      {shown.length === 0 &&
        (inbox.loading.value ? (
          <Loading label="Loading conversations" />
        ) : (
          !inbox.failure.value && <NothingToShow queue={inbox.queue.value} tag={inbox.tag.value} />
        ))}
      {inbox.hasMore.value && (
        <Button
          kind="ghost more"
          disabled={inbox.loading.value}
          onClick={() => inbox.loadMore().then(() => announcer.say('More conversations loaded.'))}
        >
          Load more conversations
        </Button>
      )}
    </>
  )
}

function NothingToShow({ queue, tag }: { queue: Queue; tag: string }) {
  if (tag !== '')
    return (
      <Empty icon="tag" title="No conversations with this tag">
        <p>Choose another queue, or all tags.</p>
      </Empty>
    )
  const texts = {
    unanswered: ['Nobody is waiting', 'Every open conversation has an answer.'],
    mine: ['No conversations assigned to you', 'Press a in a conversation to assign it to yourself.'],
    unassigned: ['No unassigned conversations', 'Every open conversation has an agent.'],
    closed: ['No closed conversations', 'Closed conversations appear here. A new message reopens them.'],
  }
  if (queue !== 'open') {
    const [title, text] = texts[queue] as [string, string]
    return (
      <Empty icon="check" title={title}>
        <p>{text}</p>
      </Empty>
    )
  }
  return (
    <Empty icon="inbox" title="No open conversations">
      <p>
        A conversation appears here when a visitor writes. To add the chat to your site, see{' '}
        <a href={pathOf({ view: 'installations' })}>Websites</a>.
      </p>
    </Empty>
  )
}

/** The service counts up to 1,000. */
export const countText = (count: number) => (count > 999 ? '999+' : String(count))
