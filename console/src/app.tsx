import { useEffect, useMemo } from 'preact/hooks'
import { systemClock } from '../../widget/src/platform.ts'
import { pageLifecycle } from '../../widget/src/ui/page-lifecycle.ts'
import { createPageTabs } from '../../widget/src/ui/page-tabs.ts'
import type { Announcer } from './announcer.ts'
import type { Api } from './api.ts'
import { type Console, ConsoleContext } from './console-context.ts'
import { createDrafts } from './conversation/drafts.ts'
import { createInbox } from './inbox/inbox.ts'
import { createOperations } from './operations.ts'
import type { Router } from './router.ts'
import type { SessionHolder, WorkspaceSession } from './session.ts'
import { Shell } from './shell.tsx'
import type { Shortcuts } from './shortcuts.ts'
import { SignIn } from './sign-in.tsx'

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
  return (
    <>
      {session ? <SignedIn key={session.token} session={session} {...props} /> : <SignIn holder={holder} />}
      <div class="visually-hidden" role="status" aria-live="polite">
        {announcer.text}
      </div>
    </>
  )
}

function SignedIn({ session, ...app }: AppProps & { session: WorkspaceSession }) {
  const { api, holder } = app
  const context = useMemo<Console>(() => {
    const drafts = createDrafts(sessionStorage, `${session.workspaceId} ${session.operator}`)
    const inbox = createInbox({
      api,
      me: () => session.displayName,
      platform: { clock: systemClock, lifecycle: pageLifecycle, tabs: createPageTabs(location.origin) },
      now: Date.now,
      random: Math.random,
      browserEvents: window,
    })
    return { ...app, session, drafts, inbox, operations: createOperations() }
  }, [session])
  useEffect(() => {
    context.inbox.start()
    return () => {
      context.inbox.stop()
      if (holder.ended.peek() === 'signed_out') context.drafts.clear()
    }
  }, [context])
  return (
    <ConsoleContext.Provider value={context}>
      <Shell />
    </ConsoleContext.Provider>
  )
}
