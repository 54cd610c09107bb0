import { useSignalEffect } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { initialsOf } from '../../browser/chat/initials.ts'
import { alertProblems } from './alerts/alerts.ts'
import { createPageBadge } from './alerts/page-badge.ts'
import { ChangesView } from './changes/changes-view.tsx'
import { useConsole, useShortcuts } from './console-context.ts'
import { DeliveriesView } from './deliveries/deliveries-view.tsx'
import { DeliveryView } from './deliveries/delivery-view.tsx'
import { countText, InboxView } from './inbox/inbox-view.tsx'
import { InstallationView } from './installations/installation-view.tsx'
import { InstallationsView } from './installations/installations-view.tsx'
import { LeadView } from './leads/lead-view.tsx'
import { LeadsView } from './leads/leads-view.tsx'
import { PeopleView } from './people/people-view.tsx'
import { ReportView } from './report/report-view.tsx'
import { areaOf, areas, groups, type KnownRoute, pathOf, placeOf, type Route } from './router.ts'
import { NewSubscriptionView } from './subscriptions/new-subscription-view.tsx'
import { SubscriptionView } from './subscriptions/subscription-view.tsx'
import { SubscriptionsView } from './subscriptions/subscriptions-view.tsx'
import { SuppressionImportView } from './suppressions/import-view.tsx'
import { SuppressionsView } from './suppressions/suppressions-view.tsx'
import { TeamView } from './team/team-view.tsx'
import { formatDistance } from './time.ts'
import { Picture } from './ui/avatar.tsx'
import { ActionDialog, Dialog } from './ui/dialog.tsx'
import { Toggle } from './ui/form.tsx'
import { useLoad } from './ui/load.tsx'
import { Empty, Icon, IconButton, Notice, Page } from './ui/page.tsx'
import { PictureField } from './ui/picture-field.tsx'
import { SavedRepliesView } from './workspace/saved-replies-view.tsx'
import { WorkspaceView } from './workspace/workspace-view.tsx'

const showBadge = createPageBadge(document.querySelector<HTMLLinkElement>('link[rel=icon]')!)

/** Frame of every view: navigation, operator and connection state. */
export function Shell() {
  const { session, holder, api, router, inbox, alerts, announcer } = useConsole()
  const [isHelpOpen, setHelpOpen] = useState(false)
  const [hasMore, setMore] = useState(false)
  const [problem, setProblem] = useState<keyof typeof alertProblems>()
  const [leaving, setLeaving] = useState<{ drafts: number; failed?: boolean }>()
  const main = useRef<HTMLElement>(null)
  const workspace = useLoad(async () => (await api.workspaces.getWorkspace({})).workspace, [session.id])
  const route = router.route.value
  const area = areaOf(route)
  const View = views[route.view] as (props: Record<string, unknown>) => JSX.Element
  const unanswered = inbox.unanswered.value
  const pathOfArea = (view: (typeof areas)[number]['view']) =>
    view === 'inbox' ? router.inFilter() : pathOf({ view } as KnownRoute)

  useShortcuts({
    '?': () => setHelpOpen(true),
    ...Object.fromEntries(areas.map(({ key, view }) => [key, () => router.go(pathOfArea(view))])),
  })

  useSignalEffect(() => {
    const count = inbox.unanswered.value
    document.title = `${count > 0 ? `(${count}) ` : ''}${areaOf(router.route.value)?.name ?? 'Not found'} · Console`
  })
  useSignalEffect(() => void showBadge(inbox.unanswered.value))
  useEffect(() => () => void showBadge(0), [])
  useFocusOnRoute(main)
  useEffect(() => setMore(false), [area])

  async function toggleAlerts() {
    const found = await alerts.toggle()
    setProblem(found)
    announcer.say(
      found ? alertProblems[found].title : alerts.isEnabled.value ? 'Notifications are on.' : 'Notifications are off.',
    )
  }

  async function signOut() {
    const drafts = await holder.draftsOfAllTabs()
    if (drafts > 0) setLeaving({ drafts })
    else if (!(await holder.signOut())) setLeaving({ drafts, failed: true })
  }

  return (
    <div class={`shell view-${route.view}`}>
      <button type="button" class="skip-link" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <nav class="sidebar" aria-label="Console">
        <div class="workspace">
          <span class="workspace-mark" aria-hidden="true">
            <Icon name="inbox" />
          </span>
          <span class="workspace-name ellipsis">{workspace.value?.name ?? session.workspaceId}</span>
        </div>
        <div class={hasMore ? 'stack area-groups all' : 'stack area-groups'}>
          {groups.map((group) => (
            <ul key={group.title} class="areas" aria-label={group.title}>
              {group.areas.map(({ name, view, isTab }) => (
                <li key={view} class={isTab ? 'tab' : undefined}>
                  <a href={pathOfArea(view)} aria-current={area?.view === view ? 'page' : undefined} title={name}>
                    <Icon name={view} />
                    <span class="area-name">{name}</span>
                    {view === 'inbox' && unanswered > 0 && (
                      <span class="count" key={unanswered}>
                        {countText(unanswered)}
                        <span class="visually-hidden"> unanswered</span>
                      </span>
                    )}
                  </a>
                </li>
              ))}
            </ul>
          ))}
          <button
            type="button"
            class="more-tab"
            aria-current={area && !area.isTab ? 'true' : undefined}
            aria-expanded={hasMore}
            onClick={() => setMore(!hasMore)}
          >
            <Icon name={hasMore ? 'down' : 'up'} />
            More
          </button>
        </div>
        <div class="sidebar-foot">
          <ConnectionStateLine />
          <div class="operator">
            <OwnPicture />
            <strong class="operator-name ellipsis">{session.displayName}</strong>
            <IconButton
              icon={alerts.isEnabled.value ? 'bell' : 'bell-off'}
              label="Notifications and sound"
              aria-pressed={alerts.isEnabled.value}
              title={alerts.isEnabled.value ? 'Notifications and sound are on' : 'Notifications and sound are off'}
              onClick={toggleAlerts}
            />
            <IconButton
              class="icon-button not-narrow"
              icon="help"
              label="Keyboard shortcuts"
              onClick={() => setHelpOpen(true)}
            />
            <IconButton icon="leave" label="Sign out" onClick={signOut} />
          </div>
        </div>
      </nav>
      <main id="main" class="main" ref={main} tabIndex={-1}>
        {/* The list of the inbox stays when a conversation is opened. */}
        <View key={area?.view === 'inbox' ? 'inbox' : placeOf(route)} {...route} onRenamed={workspace.reload} />
      </main>
      {problem && (
        <Dialog title={alertProblems[problem].title} onClose={() => setProblem(undefined)}>
          <p class="dialog-body">{alertProblems[problem].text}</p>
        </Dialog>
      )}
      {leaving && <SignOutDialog {...leaving} onClose={() => setLeaving(undefined)} />}
      {isHelpOpen && <ShortcutHelp onClose={() => setHelpOpen(false)} />}
    </div>
  )
}

/** Each view gets the parameters of its address. */
const views: {
  [Name in Route['view']]: (props: Extract<Route, { view: Name }> & { onRenamed: () => void }) => JSX.Element
} = {
  inbox: InboxView,
  conversation: InboxView,
  installations: InstallationsView,
  installation: InstallationView,
  leads: LeadsView,
  lead: LeadView,
  deliveries: DeliveriesView,
  delivery: DeliveryView,
  subscriptions: SubscriptionsView,
  'new-subscription': NewSubscriptionView,
  'new-hook': NewSubscriptionView,
  subscription: SubscriptionView,
  changes: ChangesView,
  suppressions: SuppressionsView,
  'suppression-import': SuppressionImportView,
  workspace: WorkspaceView,
  replies: SavedRepliesView,
  people: PeopleView,
  team: TeamView,
  report: ReportView,
  unknown: NotFound,
}

function NotFound() {
  return (
    <Page title="Not found">
      <Empty icon="search" title="Page not found">
        <p>
          <a href={pathOf({ view: 'inbox' })}>Go to the inbox</a>
        </p>
      </Empty>
    </Page>
  )
}

/** Moves the focus to the heading of a new place, so that screen readers announce it. */
function useFocusOnRoute(main: { current: HTMLElement | null }) {
  const place = placeOf(useConsole().router.route.value)
  const before = useRef(place)
  // A layout effect, so that the focus moves before the next key press.
  useLayoutEffect(() => {
    if (before.current === place) return
    before.current = place
    const heading = main.current?.querySelector<HTMLElement>('[data-focus-first] h1, [data-focus-first] h2')
    ;(heading ?? main.current?.querySelector<HTMLElement>('h1') ?? main.current)?.focus()
  }, [place])
}

/** Interruptions shorter than 1.5 s are not shown. */
function ConnectionStateLine() {
  const { inbox, announcer } = useConsole()
  const link = inbox.link.value
  const [settled, setSettled] = useState(link.name)
  useEffect(() => {
    const quiet = link.name === 'live' || link.name === 'rejected' ? 0 : 1500
    const timer = setTimeout(() => setSettled(link.name), quiet)
    return () => clearTimeout(timer)
  }, [link.name])
  const live = settled === 'live'
  useEffect(() => {
    if (settled === 'waiting') announcer.say('Inbox disconnected. Reconnecting.')
    if (live) announcer.say('Inbox connected.')
  }, [settled === 'waiting', live])

  if (settled === 'rejected')
    return <p class="link-state off">Offline: this session does not allow live updates. Reload to see new messages.</p>
  if (live) return <p class="link-state on">Live</p>
  return (
    <p class="link-state waiting">
      {settled === 'connecting' ? 'Connecting…' : 'Reconnecting…'}
      {link.name === 'waiting' && ` next attempt in ${formatDistance(link.retryAt - Date.now())}`}
    </p>
  )
}

/** The operator's picture. It opens a dialog in which the operator changes it. */
function OwnPicture() {
  const { api, session, holder } = useConsole()
  const [isOpen, setOpen] = useState(false)
  const initials = initialsOf(session.displayName)
  const url = holder.face.value
  return (
    <>
      <button type="button" class="icon-button" title="Your picture" onClick={() => setOpen(true)}>
        <Picture initials={initials} url={url} />
      </button>
      {isOpen && (
        <Dialog title="Your picture" onClose={() => setOpen(false)}>
          <div class="stack dialog-body">
            <PictureField
              label="Picture"
              hint="Visitors see it beside your answers. It is cut to a square, and made small in this browser."
              shape="face"
              initials={initials}
              url={url}
              onSave={async (picture) => holder.setFace((await api.messaging.setAgentPicture(picture)).avatarUrl)}
            />
          </div>
        </Dialog>
      )}
    </>
  )
}

interface SignOutDialogProps {
  /** Number of conversations with drafts, in all tabs. */
  drafts: number
  failed?: boolean
  onClose: () => void
}

/** Asks before a sign-out that deletes drafts, and reports a sign-out that failed. */
function SignOutDialog({ drafts, failed, onClose }: SignOutDialogProps) {
  const { holder } = useConsole()
  async function signOut() {
    if (!(await holder.signOut())) throw new Error('unreachable')
  }
  return (
    <ActionDialog title="Sign out" action="Sign out" danger onClose={onClose} onConfirm={signOut}>
      {drafts > 0 && (
        <p>
          {drafts === 1 ? 'One conversation has' : `${drafts} conversations have`} an unsent draft. Signing out deletes
          drafts in all tabs.
        </p>
      )}
      {failed && (
        <Notice tone="danger">You are still signed in, because the service cannot be reached. Try again.</Notice>
      )}
    </ActionDialog>
  )
}

const shortcutGroups: { title: string; keys: [string, string][] }[] = [
  {
    title: 'Everywhere',
    keys: [
      ['?', 'Keyboard shortcuts'],
      ...areas.map(({ key, name }): [string, string] => [key, name]),
      ['j', 'Next row'],
      ['k', 'Previous row'],
    ],
  },
  {
    title: 'Inbox',
    keys: [
      ['j', 'Next conversation'],
      ['k', 'Previous conversation'],
      ['Enter', 'Open conversation'],
      ['n', 'Open the one that waits longest'],
      ['/', 'Search'],
    ],
  },
  {
    title: 'Conversation',
    keys: [
      ['r', 'Reply'],
      ['Enter', 'Send'],
      ['Ctrl Enter', 'Send and close'],
      ['Shift Enter', 'New line'],
      ['Esc', 'Leave the reply, back to the list'],
      ['m', 'Note or reply'],
      ['c', 'Close or reopen'],
      ['a', 'Assign to me or unassign'],
      ['i', 'Visitor details'],
    ],
  },
]

function ShortcutHelp({ onClose }: { onClose: () => void }) {
  const { shortcuts } = useConsole()
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose} wide>
      <div class="stack dialog-body">
        <div class="shortcut-groups">
          {shortcutGroups.map(({ title, keys }) => (
            <section key={title}>
              <h3>{title}</h3>
              <dl class="shortcuts">
                {keys.map(([names, what]) => (
                  <div key={what}>
                    <dt>
                      {names.split(' ').map((name) => (
                        <kbd key={name}>{name}</kbd>
                      ))}
                    </dt>
                    <dd>{what}</dd>
                  </div>
                ))}
              </dl>
            </section>
          ))}
        </div>
        <Toggle
          label="Single-key shortcuts"
          hint="Turn off if you use voice control or press keys by accident."
          checked={shortcuts.enabled.value}
          onChange={(on) => (shortcuts.enabled.value = on)}
        />
      </div>
    </Dialog>
  )
}
