import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import { ConversationStatus } from '#proto/messaging/v1/messaging_pb.js'
import { useConsole, useShortcuts } from '../console-context.ts'
import { ConversationView } from '../conversation/conversation-view.tsx'
import { snippetOf } from '../installations/installation-words.ts'
import { useInstallations } from '../installations/update.ts'
import { type InboxFilter, pathOf } from '../router.ts'
import { CopyButton } from '../ui/dialog.tsx'
import { Segments, Select } from '../ui/form.tsx'
import { useLoad, useRowKeys } from '../ui/load.tsx'
import { Button, Empty, FailureNotice, Icon, Loading } from '../ui/page.tsx'
import { ConversationRow } from './conversation-row.tsx'
import { type Queue, queueOf, queues } from './inbox-filter.ts'
import { SearchFilters, SearchResults } from './search-results.tsx'

interface InboxViewProps extends InboxFilter {
  conversationId?: string | undefined
  /** `details` shows the visitor's details. */
  part?: string | undefined
  /** Sequence of the message that the conversation shows first. */
  message?: string | undefined
}

export function InboxView({ conversationId, part, message: sequence }: InboxViewProps) {
  const { inbox } = useConsole()
  const details = part === 'details'
  const message = Number(sequence) || undefined
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

const statuses = [
  ['open', 'Open'],
  ['closed', 'Closed'],
  ['all', 'All'],
] as const

function ConversationList({ openId, openMessage }: { openId?: string; openMessage?: number }) {
  const { inbox, router, announcer } = useConsole()
  const list = useRef<HTMLElement>(null)
  const field = useRef<HTMLInputElement>(null)
  const { search } = inbox
  const searches = search.isActive.value

  useRowKeys('.conversations .rows a')
  useShortcuts({
    n: () => void openNext(),
    '/': () => {
      // On a phone, the search field is on the page of the list, so go there first.
      if (field.current?.offsetParent === null) router.go(router.inFilter())
      requestAnimationFrame(() => field.current?.focus())
    },
  })

  async function openNext() {
    const next = await inbox.nextUnanswered(openId).catch(() => undefined)
    if (next) router.go(router.inFilter({ conversationId: next }))
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
            value={search.typed.value}
            onInput={(event) => search.type(event.currentTarget.value)}
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
            <Segments
              legend="Conversation status"
              isLegendHidden
              options={statuses}
              value={search.query.value.status}
              onChange={(status) => router.setFilter({ status })}
            />
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
  const { inbox, router } = useConsole()
  const counts = inbox.counts.value
  const filter = router.filter.value
  // None until the inbox has chosen one.
  const chosen = filter.queue && queueOf(filter)
  return (
    <fieldset class="queues">
      <legend class="visually-hidden">Queue</legend>
      {(Object.keys(queues) as Queue[]).map((queue) => {
        const count = queue === 'closed' ? 0 : (counts?.[queue] ?? 0)
        return (
          <label key={queue} class="chip">
            <input type="radio" name="queue" checked={queue === chosen} onChange={() => router.setFilter({ queue })} />
            <span>
              {queues[queue].name}
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
  const { router, api } = useConsole()
  const known = useLoad(async () => (await api.messaging.listTags({})).tags, [])
  const chosen = router.filter.value.tag ?? ''
  const tags = new Set([...(chosen ? [chosen] : []), ...(known.value ?? [])])
  if (tags.size === 0) return null
  return (
    <Select
      aria-label="Tag"
      value={chosen}
      options={[['', 'All tags'], ...[...tags].map((tag) => [tag, tag] as const)]}
      onFocus={known.reload}
      onChange={(tag) => router.setFilter({ tag })}
    />
  )
}

function LoadedConversations({ openId }: { openId?: string }) {
  const { inbox, announcer } = useConsole()
  const shown = inbox.shown.value
  return (
    <>
      <FailureNotice failure={inbox.failure.value} retry={inbox.reload} />
      {shown.length > 0 && (
        <ul class="rows">
          {shown.map((conversation) => (
            <ConversationRow
              key={conversation.conversationId}
              conversation={conversation}
              open={conversation.conversationId === openId}
            />
          ))}
        </ul>
      )}
      {shown.length === 0 &&
        (inbox.isLoading.value ? <Loading label="Loading conversations" /> : !inbox.failure.value && <NothingToShow />)}
      {inbox.hasMore.value && (
        <Button
          kind="ghost more"
          disabled={inbox.isBusy.value}
          onClick={() => inbox.loadMore().then(() => announcer.say('More conversations loaded.'))}
          text="Load more conversations"
        />
      )}
    </>
  )
}

function NothingToShow() {
  const { api, router } = useConsole()
  const { tag } = router.filter.value
  const queue = queueOf(router.filter.value)
  const closed = useLoad(async () => {
    const { conversations } = await api.messaging.listConversations({ status: ConversationStatus.CLOSED, limit: 1 })
    return conversations.length
  }, [])
  if (queue === 'open' && !tag && closed.value === 0) return <FirstSteps />
  const [title, text] = tag
    ? ['No conversations with this tag', 'Choose another queue, or all tags.']
    : queues[queue].empty
  return (
    <Empty icon={tag ? 'tag' : queue === 'open' ? 'inbox' : 'check'} title={title}>
      <p>{text}</p>
    </Empty>
  )
}

/** The service counts up to 1,000. */
export const countText = (count: number) => (count > 999 ? '999+' : String(count))

const pollMs = 5_000

/** The steps of a new workspace to its first conversation, which takes their place. Each ticks itself. */
function FirstSteps() {
  const { inbox } = useConsole()
  const sites = useInstallations(pollMs)
  const [site] = sites
  const snippet = site && snippetOf(location.origin, site.publicSiteKey)
  const steps: [isDone: boolean, text: ComponentChildren][] = [
    [
      sites.length > 0,
      <p>
        <a href={pathOf({ view: 'installations' })}>Add your website</a>
      </p>,
    ],
    [
      inbox.wasVisited.value,
      <>
        Put this line on its pages. Then open a page, and the chat on it.
        {snippet && (
          <>
            <code class="snippet">{snippet}</code>
            <CopyButton text={snippet} />
          </>
        )}
      </>,
    ],
    [false, 'Write a message in the chat. It appears here.'],
  ]
  return (
    <div class="stack first-steps">
      <h2>Three steps to your first conversation</h2>
      <ol class="stack">
        {steps.map(([isDone, text], index) => (
          <li key={index} class={isDone ? 'done' : undefined}>
            <span class={isDone ? 'tag ok' : 'tag'}>{isDone ? 'Done' : index + 1}</span>
            <div class="stack">{text}</div>
          </li>
        ))}
      </ol>
    </div>
  )
}
