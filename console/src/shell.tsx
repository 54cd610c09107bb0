import { useSignalEffect } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { alertProblems } from './alerts/alerts.ts'
import { createPageBadge } from './alerts/page-badge.ts'
import { areaOf, areas, groups } from './areas.ts'
import { ChangesView } from './changes/changes-view.tsx'
import { ConnectionStateLine } from './connection-state.tsx'
import { useConsole } from './console-context.ts'
import { DeliveriesView } from './deliveries/deliveries-view.tsx'
import { DeliveryView } from './deliveries/delivery-view.tsx'
import { countText, InboxView } from './inbox/inbox-view.tsx'
import { InstallationView } from './installations/installation-view.tsx'
import { InstallationsView } from './installations/installations-view.tsx'
import { LeadView } from './leads/lead-view.tsx'
import { LeadsView } from './leads/leads-view.tsx'
import { OwnPicture } from './own-picture.tsx'
import { PeopleView } from './people/people-view.tsx'
import { ReportView } from './report/report-view.tsx'
import { pathOf, type Route } from './router.ts'
import { ShortcutHelp } from './shortcut-help.tsx'
import { SignOutDialog } from './sign-out-dialog.tsx'
import { NewSubscriptionView } from './subscriptions/new-subscription-view.tsx'
import { SubscriptionView } from './subscriptions/subscription-view.tsx'
import { SubscriptionsView } from './subscriptions/subscriptions-view.tsx'
import { SuppressionImportView } from './suppressions/import-view.tsx'
import { SuppressionsView } from './suppressions/suppressions-view.tsx'
import { formatDistance, formatFull } from './time.ts'
import { IconButton } from './ui/button.tsx'
import { Dialog } from './ui/dialog.tsx'
import { Icon } from './ui/icon.tsx'
import { useLoad } from './ui/load.ts'
import { Empty } from './ui/notice.tsx'
import { Page } from './ui/page.tsx'
import { SavedRepliesView } from './workspace/saved-replies-view.tsx'
import { WorkspaceView } from './workspace/workspace-view.tsx'

const badge = createPageBadge(document.querySelector<HTMLLinkElement>('link[rel=icon]')!)

/** Frame of every view: navigation, operator and connection state. */
export function Shell() {
  const { session, holder, api, router, inbox, shortcuts, alerts, announcer } = useConsole()
  const [isHelpOpen, setHelpOpen] = useState(false)
  const [problem, setProblem] = useState<keyof typeof alertProblems>()
  const [leaving, setLeaving] = useState<{ drafts: number; failed?: boolean }>()
  const main = useRef<HTMLElement>(null)
  const workspace = useLoad(async () => (await api.workspaces.getWorkspace({})).workspace, [session.id])
  const route = router.route.value
  const area = areaOf(route)
  const unanswered = inbox.unanswered.value

  useEffect(
    () =>
      shortcuts.bind({
        '?': () => setHelpOpen(true),
        ...Object.fromEntries(areas.map(({ key, view }) => [key, () => router.go(pathOf({ view }))])),
      }),
    [shortcuts],
  )

  useSignalEffect(() => {
    const count = inbox.unanswered.value
    document.title = `${count > 0 ? `(${count}) ` : ''}${areaOf(router.route.value)?.name ?? 'Not found'} · Console`
  })
  useSignalEffect(() => void badge.show(inbox.unanswered.value))
  useEffect(() => () => void badge.show(0), [])
  useFocusOnRoute(main)
  // On phones the navigation scrolls, and the present area may be out of view.
  const nav = useRef<HTMLElement>(null)
  useEffect(
    () => nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' }),
    [area],
  )

  async function toggleAlerts() {
    const found = await alerts.toggle()
    setProblem(found)
    announcer.say(found ? alertProblems[found].title : `Notifications are ${alerts.isEnabled.value ? 'on' : 'off'}.`)
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
      <nav class="sidebar" aria-label="Console" ref={nav}>
        <div class="workspace">
          <span class="workspace-mark" aria-hidden="true">
            <Icon name="inbox" />
          </span>
          <span class="workspace-name ellipsis">{workspace.value?.name ?? session.workspaceId}</span>
        </div>
        <div class="area-groups">
          {groups.map((group) => (
            <ul key={group.title} class="areas" aria-label={group.title}>
              {group.areas.map(({ name, icon, view }) => (
                <li key={view}>
                  <a href={pathOf({ view })} aria-current={area?.view === view ? 'page' : undefined} title={name}>
                    <Icon name={icon} />
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
        </div>
        <div class="sidebar-foot">
          <ConnectionStateLine />
          <div class="operator">
            <OwnPicture />
            <div class="operator-names">
              <strong class="ellipsis">{session.displayName}</strong>
              <span class="ellipsis" title={`${session.operator}, until ${formatFull(new Date(session.expiresAt))}`}>
                {`expires in ${formatDistance(session.expiresAt - Date.now())}`}
              </span>
            </div>
            <IconButton
              icon={alerts.isEnabled.value ? 'bell' : 'bell-off'}
              label="Notifications and sound"
              aria-pressed={alerts.isEnabled.value}
              title={alerts.isEnabled.value ? 'Notifications and sound are on' : 'Notifications and sound are off'}
              onClick={toggleAlerts}
            />
            <IconButton icon="help" label="Keyboard shortcuts" onClick={() => setHelpOpen(true)} />
            <IconButton icon="leave" label="Sign out" onClick={signOut} />
          </div>
        </div>
      </nav>
      <main id="main" class="main" ref={main} tabIndex={-1}>
        <View route={route} />
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

function View({ route }: { route: Route }) {
  switch (route.view) {
    case 'inbox':
      return <InboxView />
    case 'conversation':
      return <InboxView {...route} />
    case 'installations':
      return <InstallationsView />
    case 'installation':
      return <InstallationView key={route.siteKey} siteKey={route.siteKey} tab={route.tab} />
    case 'leads':
      return <LeadsView />
    case 'lead':
      return <LeadView key={route.leadId} leadId={route.leadId} />
    case 'deliveries':
      return <DeliveriesView {...route} />
    case 'delivery':
      return <DeliveryView key={route.deliveryId} deliveryId={route.deliveryId} />
    case 'subscriptions':
      return <SubscriptionsView />
    case 'new-subscription':
      return <NewSubscriptionView isHook={false} />
    case 'new-hook':
      return <NewSubscriptionView isHook />
    case 'subscription':
      return <SubscriptionView key={route.subscriptionId} subscriptionId={route.subscriptionId} />
    case 'changes':
      return <ChangesView key={route.target} target={route.target} />
    case 'suppressions':
      return <SuppressionsView />
    case 'suppression-import':
      return <SuppressionImportView />
    case 'workspace':
      return <WorkspaceView />
    case 'replies':
      return <SavedRepliesView />
    case 'people':
      return <PeopleView />
    case 'report':
      return <ReportView />
    case 'unknown':
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
}

/**
 * Moves the focus to the heading of a new view, so that screen readers announce it. A change of the
 * filter does not move the focus.
 */
function useFocusOnRoute(main: { current: HTMLElement | null }) {
  const { router } = useConsole()
  const before = useRef<string | undefined>(undefined)
  const route = router.route.value
  const place =
    route.view === 'conversation' ? `conversation ${route.conversationId}${route.details}` : JSON.stringify(route)
  useEffect(() => {
    const first = before.current === undefined
    const onlyFilter = route.view === 'deliveries' && before.current?.includes('"deliveries"')
    const onlyTab =
      route.view === 'installation' && before.current?.includes(`"installation","siteKey":"${route.siteKey}"`)
    before.current = place
    if (first || onlyFilter || onlyTab) return
    const heading = main.current?.querySelector<HTMLElement>('[data-focus-first] h1, [data-focus-first] h2')
    ;(heading ?? main.current?.querySelector<HTMLElement>('h1') ?? main.current)?.focus()
  }, [place])
}
