import { useEffect, useRef } from 'preact/hooks'
import { useConsole } from '../console-context.ts'
import { ConversationView } from '../conversation/conversation-view.tsx'
import { pathOf } from '../router.ts'
import { Button } from '../ui/button.tsx'
import { Icon } from '../ui/icon.tsx'
import { Empty, FailureNotice, Loading } from '../ui/notice.tsx'
import { ConversationRow } from './conversation-row.tsx'
import type { InboxFilter } from './inbox-merge.ts'

/**
 * Shows the list of conversations beside the open one. On a phone, the list and the conversation
 * are separate pages.
 */
export function InboxView({ conversationId, details = false }: { conversationId?: string; details?: boolean }) {
  const { inbox } = useConsole()
  return (
    <div class={conversationId === undefined ? 'inbox' : `inbox open${details ? ' details-open' : ''}`}>
      <h1 class="visually-hidden" tabIndex={-1}>
        Inbox
      </h1>
      <ConversationList openId={conversationId} />
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
        <ConversationView key={conversationId} conversationId={conversationId} details={details} />
      )}
    </div>
  )
}

const statuses = { open: 'Open', closed: 'Closed', all: 'All' } as const

function ConversationList({ openId }: { openId: string | undefined }) {
  const { inbox, session, shortcuts, router, announcer } = useConsole()
  const list = useRef<HTMLUListElement>(null)
  const search = useRef<HTMLInputElement>(null)
  const filter = inbox.filter.value
  const shown = inbox.shown.value
  const set = (change: Partial<InboxFilter>) => {
    inbox.filter.value = { ...inbox.filter.value, ...change }
  }

  useEffect(() => {
    const rows = () => [...(list.current?.querySelectorAll<HTMLElement>('a') ?? [])]
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
        if (search.current?.offsetParent === null) router.go(pathOf({ view: 'inbox' }))
        requestAnimationFrame(() => search.current?.focus())
      },
    })
  }, [shortcuts])

  return (
    <section class="conversations" aria-label="Conversations">
      <header class="conversations-head">
        <p class="list-title" aria-hidden="true">
          Inbox
        </p>
        <div class="search">
          <Icon name="search" />
          <input
            ref={search}
            type="search"
            class="input"
            aria-label="Search loaded conversations"
            placeholder="Search"
            value={filter.text}
            onInput={(event) => set({ text: event.currentTarget.value })}
            onKeyDown={(event) => {
              if (event.key === 'ArrowDown' || event.key === 'Enter') {
                event.preventDefault()
                list.current?.querySelector('a')?.focus()
              } else if (event.key === 'Escape') {
                set({ text: '' })
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
                <input type="radio" name="status" checked={filter.status === status} onChange={() => set({ status })} />
                <span>{statuses[status]}</span>
              </label>
            ))}
          </fieldset>
          <label class="chip">
            <input
              type="checkbox"
              checked={filter.mine}
              onChange={(event) => set({ mine: event.currentTarget.checked })}
            />
            <span>Mine</span>
          </label>
        </div>
      </header>
      <FailureNotice failure={inbox.failure.value} retry={() => void inbox.reload()} />
      {shown.length > 0 && (
        <ul class="rows" ref={list}>
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
          !inbox.failure.value && <NothingToShow filter={filter} onReset={() => set({ text: '', mine: false })} />
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
    </section>
  )
}

function NothingToShow({ filter, onReset }: { filter: InboxFilter; onReset: () => void }) {
  if (filter.text !== '' || filter.mine) {
    return (
      <Empty icon="search" title="No results">
        <p>Only loaded conversations are searched.</p>
        <Button onClick={onReset}>Clear filters</Button>
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
