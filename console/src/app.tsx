import { signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { pageLifecycle } from '../../browser/page-lifecycle.ts'
import { createPageTabs } from '../../browser/page-tabs.ts'
import { systemClock } from '../../browser/platform.ts'
import { createPageAlerts, listeningLifecycle } from './alerts/page-alerts.ts'
import type { Api } from './api.ts'
import { type Announcer, type Console, ConsoleContext } from './console-context.ts'
import { createDrafts, createOutbox } from './conversation/composer/outbox.ts'
import { createInbox } from './inbox/inbox.ts'
import type { Router } from './router.ts'
import type { SessionHolder, WorkspaceSession } from './session.ts'
import { Shell } from './shell.tsx'
import type { Shortcuts } from './shortcuts.ts'
import { SignIn } from './sign-in.tsx'
import { storedSwitch, tabStore } from './storages.ts'
import { Loading, Notice } from './ui/page.tsx'

interface AppProps {
  holder: SessionHolder
  api: Api
  router: Router
  announcer: Announcer
  shortcuts: Shortcuts
}

export function App(props: AppProps) {
  const { holder, announcer } = props
  const session = holder.current.value
  const isOpening = holder.link.value !== undefined
  return (
    <>
      {session && !isOpening ? (
        <SignedIn key={session.id} session={session} {...props} />
      ) : holder.loading.value && !isOpening ? (
        <main class="sign-in">
          {holder.loading.value === 'loading' ? (
            <Loading label="Loading the console" />
          ) : (
            <Notice tone="warning">The service cannot be reached. The console tries again every two seconds.</Notice>
          )}
        </main>
      ) : (
        <SignIn holder={holder} />
      )}
      <div class="visually-hidden" role="status" aria-live="polite">
        {announcer.text}
      </div>
    </>
  )
}

function SignedIn({ session, ...app }: AppProps & { session: WorkspaceSession }) {
  const { api, holder, router } = app
  const context = useMemo<Console & { stops: (() => void)[] }>(() => {
    const owner = `${session.workspaceId} ${session.operator}`
    const drafts = createDrafts(tabStore, owner)
    const outbox = createOutbox({
      messaging: api.messaging,
      drafts,
      agent: holder.agent,
      clock: systemClock,
      random: Math.random,
    })
    const hasAlerts = signal(false)
    const listening = listeningLifecycle(pageLifecycle, hasAlerts, navigator.locks)
    const inbox = createInbox({
      api,
      me: session.operator,
      filter: router.filter,
      setFilter: router.setFilter,
      defaultQueue: router.defaultQueue,
      wasVisited: storedSwitch(`visited ${session.workspaceId}`, false),
      platform: { clock: systemClock, lifecycle: listening.lifecycle, tabs: createPageTabs(location.origin) },
      random: Math.random,
      browserEvents: window,
    })
    const report = session.account ? api.operators.reportAttention : undefined
    const page = createPageAlerts({ inbox, router, owner, report })
    const stops = [
      inbox.stop,
      page.stop,
      listening.stop,
      page.alerts.isEnabled.subscribe((isEnabled) => {
        hasAlerts.value = isEnabled
      }),
      inbox.link.subscribe(({ name }) => name === 'live' && outbox.sendNow()),
      outbox.stop,
    ]
    return { ...app, session, drafts, outbox, inbox, ...page, stops }
  }, [session])
  useEffect(() => {
    context.inbox.start()
    context.outbox.sendNow()
    holder.onCountDrafts(context.drafts.count)
    return () => {
      holder.onCountDrafts(() => 0)
      for (const stop of context.stops) stop()
      if (holder.ended.peek() === 'signed_out') context.drafts.clear()
    }
  }, [context])
  useEffect(() => {
    const secret = holder.mailLink.value
    if (secret === undefined) return
    holder.mailLink.value = undefined
    api.operators.confirmOwnMail({ secret }).then(
      () => app.announcer.say('Your mail address is confirmed.'),
      () => app.announcer.say('This link was used, has expired, or is for another account.'),
    )
    router.go('/console/team')
  }, [holder.mailLink.value])
  return (
    <ConsoleContext.Provider value={context}>
      <Shell />
    </ConsoleContext.Provider>
  )
}
