import { useEffect } from 'preact/hooks'
import type { Session } from '#proto/session/v1/session_pb.js'
import { pathOf } from '../router.ts'
import { Icon } from '../ui/icon.tsx'
import { Loading } from '../ui/notice.tsx'
import { Fact, Facts } from '../ui/page.tsx'
import { When } from '../ui/when.tsx'
import { CommandsPanel } from './commands-panel.tsx'
import { safeHref } from './links.ts'
import { Moderation } from './moderation.tsx'
import type { Thread } from './thread.ts'

const refreshMs = 20_000

/** The visitor's page, identity and session, with requests and moderation. */
export function Details({
  thread,
  name,
  backPath,
  open,
}: {
  thread: Thread
  name: string
  backPath: string
  open: boolean
}) {
  const session = thread.session.value
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === 'visible' && void thread.refreshSession(), refreshMs)
    return () => clearInterval(timer)
  }, [thread])

  return (
    <aside class="details" aria-label="Visitor details" data-focus-first={open ? true : undefined}>
      <header class="details-head">
        <a class="icon-button only-medium" href={backPath} aria-label="Back to the conversation">
          <Icon name="back" />
        </a>
        <h2 tabIndex={-1}>Visitor</h2>
      </header>
      {session ? (
        <div class="details-body">
          <PageSection session={session} />
          <IdentitySection session={session} />
          <CommandsPanel thread={thread} session={session} />
          <SessionSection session={session} />
          <Moderation thread={thread} session={session} name={name} />
        </div>
      ) : thread.loading.value ? (
        <Loading label="Loading visitor details" />
      ) : (
        <p class="details-none hint">No details: this conversation has no visitor session.</p>
      )}
    </aside>
  )
}

function PageSection({ session: { pageContext, pageContextAt } }: { session: Session }) {
  const href = safeHref(pageContext?.url)
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
              <span class="page-link-url">{pageContext.url.replace(/^https?:\/\//, '')}</span>
            </a>
          ) : (
            <p dir="auto">{pageContext.title || 'Unknown address'}</p>
          )}
          <Facts>
            <Fact name="Last seen">
              <When at={pageContextAt} />
            </Fact>
            <Fact name="Referrer">{pageContext.referrer}</Fact>
            <Fact name="Window">
              {pageContext.viewport && `${pageContext.viewport.width} × ${pageContext.viewport.height}`}
            </Fact>
          </Facts>
        </>
      ) : (
        <p class="hint">No page information yet.</p>
      )}
    </section>
  )
}

function IdentitySection({ session }: { session: Session }) {
  const { identityState, displayName, externalSubject, verifiedAt, context } = session
  if (identityState !== 'verified') {
    return (
      <section class="details-section">
        <h3>Identity</h3>
        <p class="hint">Anonymous. The site has not verified this visitor.</p>
      </section>
    )
  }
  return (
    <section class="details-section">
      <h3>
        Identity <span class="tag ok">Verified</span>
      </h3>
      <Facts>
        <Fact name="Name">{displayName}</Fact>
        <Fact name="Subject">
          <span class="mono">{externalSubject}</span>
        </Fact>
        <Fact name="Verified">
          <When at={verifiedAt} />
        </Fact>
        {Object.entries(context ?? {}).map(([key, value]) => (
          <Fact key={key} name={key}>
            {String(value)}
          </Fact>
        ))}
      </Facts>
      {context && Object.keys(context).length > 0 && <p class="hint">Provided by the site, for information only.</p>}
    </section>
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
    <section class="details-section">
      <h3>
        Session <span class={state === 'active' ? 'tag ok' : 'tag warn'}>{stateNames[state] ?? state}</span>
      </h3>
      <Facts>
        <Fact name="Started">
          <When at={createdAt} />
        </Fact>
        {(state === 'active' || state === 'expired') && (
          <Fact name={state === 'active' ? 'Renews by' : 'Expired'}>
            <When at={expiresAt} />
          </Fact>
        )}
        <Fact name="Site">{origin}</Fact>
        <Fact name="Language">{locale}</Fact>
        <Fact name="Installation">
          <a class="mono" href={pathOf({ view: 'installation', siteKey: publicSiteKey })}>
            {publicSiteKey}
          </a>
        </Fact>
        <Fact name="Session ID">
          <span class="mono breakable">{sessionId}</span>
        </Fact>
      </Facts>
    </section>
  )
}
