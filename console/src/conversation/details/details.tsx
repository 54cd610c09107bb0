import type { ComponentChildren } from 'preact'
import {
  type AnswerMail,
  type Conversation,
  type ConversationContact,
  ConversationStatus,
} from '#proto/messaging/v1/messaging_pb.js'
import { ConsentDecision, type Session } from '#proto/session/v1/session_pb.js'
import { safeHref } from '../../../../browser/chat/linkify.ts'
import { useConsole } from '../../console-context.ts'
import { namedFields } from '../../leads/lead-titles.ts'
import { pathOf } from '../../router.ts'
import { EntryList, SelectField } from '../../ui/form.tsx'
import { HiddenData, useAction, useLoad, usePolling } from '../../ui/load.tsx'
import { Facts, FailureNotice, Icon, Loading, When } from '../../ui/page.tsx'
import type { Assignee, Thread } from '../thread.ts'
import { CommandsPanel } from './commands-panel.tsx'
import { Moderation } from './moderation.tsx'

const refreshMs = 20_000

interface DetailsProps {
  thread: Thread
  name: string
  backPath: string
  open: boolean
}

/** Shows the visitor's page, identity and session, and the panels for requests and moderation. */
export function Details({ thread, name, backPath, open }: DetailsProps) {
  const session = thread.session.value
  usePolling(thread.refreshSession, refreshMs)

  return (
    <aside class="details" aria-label="Visitor details" data-focus-first={open ? true : undefined}>
      <header class="details-head">
        <a class="icon-button only-medium" href={backPath} aria-label="Back to the conversation">
          <Icon name="back" />
        </a>
        <h2 tabIndex={-1}>Visitor</h2>
      </header>
      {session === undefined ? (
        <Loading label="Loading visitor details" />
      ) : (
        <div class="details-body">
          {!session && <p class="details-none hint">There is no session to show.</p>}
          <HiddenData />
          <AssignmentSection thread={thread} />
          <ContactSection contact={thread.conversation.value?.contact} mail={thread.conversation.value?.mail} />
          {session && <IdentitySection session={session} />}
          <EarlierSection conversation={thread.conversation.value} />
          {session && <PageSection session={session} />}
          <TagSection thread={thread} />
          {session && (
            <>
              <CommandsPanel thread={thread} session={session} />
              <ConsentSection session={session} />
              <SessionSection session={session} />
              <Moderation thread={thread} session={session} name={name} />
            </>
          )}
        </div>
      )}
    </aside>
  )
}

function AssignmentSection({ thread }: { thread: Thread }) {
  const { api, session, holder } = useConsole()
  const { busy, failure, run } = useAction()
  const agents = useLoad(async () => (await api.messaging.listAgents({})).agents, [thread])
  const { agent: present, assignedOperatorId } = thread.conversation.value ?? {}
  const keyOf = ({ operatorId, displayName }: Assignee) => operatorId ?? displayName
  const candidates = new Map<string, Assignee>(agents.value?.map((agent) => [keyOf(agent), agent]))
  if (present) candidates.set(assignedOperatorId ?? present.displayName, { ...present, operatorId: assignedOperatorId })
  candidates.set(session.operator, { ...holder.agent(), operatorId: session.operator })
  function assign(key: string) {
    const chosen = candidates.get(key)
    const done = chosen ? `Conversation assigned to ${chosen.displayName}.` : 'Conversation unassigned.'
    void run(() => thread.assign(chosen), done)
  }
  return (
    <section class="details-section">
      <SelectField
        label="Assigned to"
        value={assignedOperatorId ?? present?.displayName ?? ''}
        disabled={busy}
        options={[
          ['', 'Nobody'],
          ...[...candidates].map(
            ([key, { displayName }]) => [key, key === session.operator ? `${displayName} (you)` : displayName] as const,
          ),
        ]}
        onChange={assign}
      />
      <FailureNotice failure={failure ?? agents.failure} />
    </section>
  )
}

interface FoldedProps {
  title: string
  tag?: ComponentChildren
  open?: boolean
  children: ComponentChildren
}

function Folded({ title, tag, open, children }: FoldedProps) {
  return (
    <details class="details-section" open={open}>
      <summary>
        {title} {tag}
      </summary>
      {children}
    </details>
  )
}

function PageSection({ session: { pageContext, pageContextAt } }: { session: Session }) {
  const href = safeHref(pageContext?.url ?? '')
  const viewport = pageContext?.viewport
  return (
    <section class="details-section">
      <h3>Page</h3>
      {pageContext ? (
        <>
          {href ? (
            <a class="page-link" href={href} target="_blank" rel="noopener noreferrer">
              <span class="page-link-title" dir="auto">
                {pageContext.title || href}
              </span>
              <span class="page-link-url ellipsis">{pageContext.url.replace(/^https?:\/\//, '')}</span>
            </a>
          ) : (
            <p dir="auto">{pageContext.title || 'Unknown address'}</p>
          )}
          <Facts
            of={[
              ['Last seen', <When at={pageContextAt} />],
              ['Referrer', pageContext.referrer],
              ['Window', viewport && `${viewport.width} × ${viewport.height}`],
            ]}
          />
        </>
      ) : (
        <p class="hint">No page information yet.</p>
      )}
    </section>
  )
}

function IdentitySection({ session }: { session: Session }) {
  const { identityState, displayName, externalSubject, verifiedAt, context } = session
  const facts = Object.entries(context ?? {})
  if (identityState !== 'verified')
    return (
      <Folded title="Identity">
        <p class="hint">Anonymous. The site has not verified this visitor.</p>
      </Folded>
    )
  return (
    <Folded title="Identity" open tag={<span class="tag ok">Verified</span>}>
      <Facts
        of={[
          ['Name', displayName],
          ['Subject', externalSubject && <code>{externalSubject}</code>],
          ['Verified', verifiedAt && <When at={verifiedAt} />],
          ...facts.map(([key, value]) => [key, String(value)] as const),
        ]}
      />
      {facts.length > 0 && <p class="hint">Provided by the site, for information only.</p>}
    </Folded>
  )
}

const mailStates: Record<string, string> = {
  waiting: 'Will be mailed',
  sending: 'Is being mailed',
  sent: 'Mailed',
  refused: 'Refused by the mail server',
  unknown: 'Perhaps mailed; the mail server did not confirm it',
  stopped: 'The visitor wants no more mails',
}

function ContactSection({ contact, mail }: { contact: ConversationContact | undefined; mail: AnswerMail | undefined }) {
  if (!contact) return null
  const { name = '', email = '', leadId } = contact
  const mailState = mail && mailStates[mail.state]
  return (
    <section class="details-section">
      <h3>Contact details</h3>
      <Facts
        of={[
          ...namedFields({ name, email }).map(([word, value]) => [word, value && <bdi>{value}</bdi>] as const),
          ['Unseen answer', mailState && [mailState, ', ', <When key="at" at={mail.at} />]],
          ['Lead', <a href={pathOf({ view: 'lead', leadId })}>Show lead</a>],
        ]}
      />
      <p class="hint">The visitor wrote this in a form. Nobody has verified it.</p>
    </section>
  )
}

/** Other conversations of the verified visitor. Those of an anonymous one have the same unverified address. */
function EarlierSection({ conversation }: { conversation: Conversation | undefined }) {
  const { api, router } = useConsole()
  const { conversationId } = conversation ?? {}
  const subject = conversation?.visitor?.externalSubject
  const query = subject || conversation?.contact?.email
  const found = useLoad(async () => {
    const { results } = query ? await api.messaging.searchConversations({ query, limit: 50 }) : { results: [] }
    const all = results.flatMap(({ conversation: each }) => each ?? [])
    return new Map(all.map((each) => [each.conversationId, each]))
  }, [conversationId, query])
  const earlier = [...(found.value?.values() ?? [])].filter(
    ({ conversationId: id, visitor, contact }) =>
      id !== conversationId && (subject ? visitor?.externalSubject : contact?.email) === query,
  )
  if (earlier.length === 0) return null
  return (
    <section class="details-section">
      <h3>Earlier conversations</h3>
      {!subject && <p class="hint">With the same e-mail address, which nobody has verified.</p>}
      {earlier.map((each) => (
        <a key={each.conversationId} class="page-link" href={router.inFilter({ conversationId: each.conversationId })}>
          <bdi class="page-link-title ellipsis">{each.lastMessage?.body || 'Submitted a form'}</bdi>
          <span class="hint">
            <When at={each.lastMessageAt} />
            {each.status === ConversationStatus.CLOSED && ' · Closed'}
          </span>
        </a>
      ))}
    </section>
  )
}

function ConsentSection({ session: { consent } }: { session: Session }) {
  if (!consent) return null
  const isGranted = consent.decision === ConsentDecision.GRANTED
  const href = safeHref(consent.policyUrl)
  return (
    <Folded
      title="Consent"
      tag={<span class={isGranted ? 'tag ok' : 'tag warn'}>{isGranted ? 'Granted' : 'Denied'}</span>}
    >
      <Facts
        of={[
          [
            'Policy',
            href ? (
              <a href={href} target="_blank" rel="noopener noreferrer">
                Version {consent.policyVersion}
              </a>
            ) : (
              `Version ${consent.policyVersion}`
            ),
          ],
          ['Decided', <When at={consent.decidedAt} />],
        ]}
      />
    </Folded>
  )
}

const stateNames: Record<string, string> = {
  active: 'Active',
  expired: 'Expired',
  closed: 'Closed',
  revoked: 'Revoked',
  banned: 'Banned',
}

function SessionSection({ session }: { session: Session }) {
  const { state, createdAt, expiresAt, origin, locale, publicSiteKey, sessionId } = session
  return (
    <Folded
      title="Session"
      tag={<span class={state === 'active' ? 'tag ok' : 'tag warn'}>{stateNames[state] ?? state}</span>}
    >
      <Facts
        of={[
          ['Started', <When at={createdAt} />],
          ['Expires', state === 'active' && <When at={expiresAt} />],
          ['Expired', state === 'expired' && <When at={expiresAt} />],
          ['Site', origin],
          ['Language', locale],
          ['Website', <code>{publicSiteKey}</code>],
          ['Session ID', <code>{sessionId}</code>],
        ]}
      />
    </Folded>
  )
}

const maxTags = 10

function TagSection({ thread }: { thread: Thread }) {
  const { api, announcer } = useConsole()
  const known = useLoad(async () => (await api.messaging.listTags({})).tags, [thread])
  const { conversationId } = thread
  const tags = thread.conversation.value?.tags ?? []

  function problemOf(tag: string) {
    if (tags.length >= maxTags) return `A conversation can have ${maxTags} tags.`
    return [...tag].length > 40 ? 'A tag has at most 40 characters.' : undefined
  }

  async function change(next: readonly string[]) {
    const added = next.find((tag) => !tags.includes(tag))
    const removed = tags.find((tag) => !next.includes(tag))
    if (added !== undefined) await thread.take(api.messaging.addTag({ conversationId, tag: added }))
    else if (removed !== undefined) await thread.take(api.messaging.removeTag({ conversationId, tag: removed }))
    announcer.say(added === undefined ? `Tag ${removed} removed.` : `Tag ${added} added.`)
  }

  return (
    <section class="details-section tags">
      <EntryList
        label="Tags"
        hint="Visitors never see tags."
        placeholder="Add a tag"
        entries={tags}
        suggestions={known.value}
        addsOnBlur={false}
        problemOf={problemOf}
        onChange={change}
      />
    </section>
  )
}
