import { useEffect, useRef } from 'preact/hooks'
import { useConsole } from '../console-context.ts'
import { ConversationView } from '../conversation/conversation-view.tsx'
import { pathOf } from '../router.ts'
import { Button } from '../ui/button.tsx'
import { Icon } from '../ui/icon.tsx'
import { Empty, FailureNotice, Loading } from '../ui/notice.tsx'
import { ConversationRow } from './conversation-row.tsx'
import type { InboxFilter } from './inbox-merge.ts'
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
                <kbd>j</kbd> and <kbd>k</kbd> move, <kbd>Enter</kbd> opens.
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

interface ConversationListProps {
  openId: string | undefined
  openMessage: number | undefined
}

function ConversationList({ openId, openMessage }: ConversationListProps) {
  const { inbox, shortcuts, router } = useConsole()
  const list = useRef<HTMLElement>(null)
  const field = useRef<HTMLInputElement>(null)
  const { search } = inbox
  const filter = inbox.filter.value
  const searches = search.isActive.value
  const set = (change: Partial<InboxFilter>) => {
    inbox.filter.value = { ...inbox.filter.value, ...change }
  }

  useEffect(() => {
    const rows = () => [...(list.current?.querySelectorAll<HTMLElement>('.rows a') ?? [])]
    function move(step: number) {
      const all = rows()
      const at = all.findIndex((row) => row === document.activeElement || row.contains(document.activeElement))
      const from = at >= 0 ? at : all.findIndex((row) => row.hasAttribute('aria-current'))
      const target = from < 0 ? all[0] : all[Math.max(0, Math.min(all.length - 1, from + step))]
      target?.focus()
    }
    return shortcuts.bind({
      j: () => move(1),
      k: () => move(-1),
      '/': () => {
        // On a phone, the search field is on the page of the list, so go there first.
        if (field.current?.offsetParent === null) router.go(pathOf({ view: 'inbox' }))
        requestAnimationFrame(() => field.current?.focus())
      },
    })
  }, [shortcuts])

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
        <div class="filters">
          <fieldset class="segments">
            <legend class="visually-hidden">Conversation status</legend>
            {(['open', 'closed', 'all'] as const).map((status) => (
              <label key={status}>
                <input
                  type="radio"
                  name="status"
                  checked={(searches ? search.query.value.status : filter.status) === status}
                  onChange={() => (searches ? search.change({ status }) : set({ status }))}
                />
                <span>{statuses[status]}</span>
              </label>
            ))}
          </fieldset>
          {!searches && (
            <label class="chip">
              <input
                type="checkbox"
                checked={filter.mine}
                onChange={(event) => set({ mine: event.currentTarget.checked })}
              />
              <span>Mine</span>
            </label>
          )}
        </div>
        {searches && <SearchFilters />}
      </header>
      {searches ? <SearchResults openId={openId} openMessage={openMessage} /> : <LoadedConversations openId={openId} />}
    </section>
  )
}

/** The loaded conversations that match the filter, latest message first. */
function LoadedConversations({ openId }: { openId: string | undefined }) {
  const { inbox, session, announcer } = useConsole()
  const filter = inbox.filter.value
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
          !inbox.failure.value && (
            <NothingToShow
              filter={filter}
              onReset={() => {
                inbox.filter.value = { ...inbox.filter.peek(), mine: false }
              }}
            />
          )
        ))}
      {inbox.hasMore.value && (
        <Button
          kind="ghost more"
          disabled={inbox.loading.value}
          onClick={() => inbox.loadMore().then(() => announcer.say('More conversations loaded.'))}
        >
          Load earlier conversations
        </Button>
      )}
    </>
  )
}

function NothingToShow({ filter, onReset }: { filter: InboxFilter; onReset: () => void }) {
  if (filter.mine) {
    return (
      <Empty icon="inbox" title="No conversations assigned to you">
        <Button onClick={onReset}>Show all</Button>
      </Empty>
    )
  }
  return filter.status === 'closed' ? (
    <Empty icon="check" title="No closed conversations">
      <p>Closed conversations appear here. A new message reopens them.</p>
    </Empty>
  ) : (
    <Empty icon="inbox" title="No conversations yet">
      <p>
        A conversation appears here when a visitor writes. To add the widget to your site, see{' '}
        <a href={pathOf({ view: 'installations' })}>Installations</a>.
      </p>
    </Empty>
  )
}
