import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { isLong, itLong, someOf } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { findSession } from '../bans/bans.ts'
import { sendAsVisitor } from '../conversations/messages.ts'
import { setTypingOfVisitor } from '../conversations/typing.ts'
import type { ConsentDecision, SessionContent } from '../sessions/model.ts'
import { visitorAccessOf } from '../sessions/visitor-access.ts'
import { codeOf, newSubject, testCores } from '../test/cores.ts'
import { credentialsOf, site as origin } from '../test/visitor-credentials.ts'
import { createSession, reportPage } from '../visitors/sessions.ts'
import { updateInstallation } from '../workspaces/workspaces.ts'
import { recordConsent } from './consents.ts'
import { authorizeReport } from './observations.ts'

const cores = testCores({ count: 2 })

const policy = (policyVersion = 'v1') => ({ required: true, policyUrl: 'https://shop.example/privacy', policyVersion })
const page = { url: 'https://shop.example/cart', title: 'Cart' }

type Site = Awaited<ReturnType<typeof cores.newSite>>

async function begin(at: Site, { browser = randomUUID() as string, core = cores.core } = {}) {
  const request = { publicSiteKey: at.publicSiteKey, origin, clientInstanceId: browser, pageContext: page }
  return (await createSession(core, { ...request, idempotencyKey: randomUUID() })).content
}

const decide = (session: SessionContent, decision: ConsentDecision['decision'], core = cores.core) =>
  recordConsent(core, {
    credentials: credentialsOf(session),
    policyVersion: 'v1',
    decision,
    idempotencyKey: randomUUID(),
  })

const storedPage = async ({ sessionId }: SessionContent) => (await findSession(cores.core, sessionId)).pageContext

const update = ({ publicSiteKey }: Site, policyVersion: string) =>
  updateInstallation(cores.core, publicSiteKey, { consent: policy(policyVersion) }, undefined)

/** States of a visitor's consent. `reach` brings a new session into the state. */
const states: { name: string; isAllowed: boolean; reach: (session: SessionContent, at: Site) => Promise<unknown> }[] = [
  {
    name: 'consent is not required',
    isAllowed: true,
    reach: (_, { publicSiteKey }) =>
      updateInstallation(cores.core, publicSiteKey, { consent: { required: false } }, undefined),
  },
  { name: 'the visitor has not decided', isAllowed: false, reach: async () => {} },
  { name: 'consent is granted', isAllowed: true, reach: (session) => decide(session, 'granted') },
  { name: 'consent is denied', isAllowed: false, reach: (session) => decide(session, 'denied') },
  {
    name: 'consent was granted and is denied now',
    isAllowed: false,
    async reach(session) {
      await decide(session, 'granted')
      await decide(session, 'denied')
    },
  },
  {
    name: 'consent was denied and is granted now',
    isAllowed: true,
    async reach(session) {
      await decide(session, 'denied')
      await decide(session, 'granted')
    },
  },
  {
    name: 'consent was granted for an older policy',
    isAllowed: false,
    async reach(session, at) {
      await decide(session, 'granted')
      await update(at, 'v2')
    },
  },
]

const requests = {
  'a page report': (session, core) => reportPage(core, { credentials: credentialsOf(session), pageContext: page }),
  'a page report with a key': (session, core) =>
    reportPage(core, {
      credentials: credentialsOf(session),
      pageContext: page,
      idempotencyKey: randomUUID(),
    }),
  'a start of typing': (session, core) => setTypingOfVisitor(core, credentialsOf(session), 'started'),
  'a stop of typing': (session, core) => setTypingOfVisitor(core, credentialsOf(session), 'stopped'),
  'a report of presence': (session, core) => authorizeReport(core, credentialsOf(session), 'presence'),
  'a message with a page': (session, core) =>
    sendAsVisitor(core, {
      credentials: credentialsOf(session),
      clientOperationId: randomUUID(),
      body: 'Hello',
      contentType: 'text',
      pageContext: page,
    }),
} satisfies Record<string, (session: SessionContent, core: typeof cores.core) => Promise<unknown>>

/** Groups of requests that share a session. In a long run, each request has a session of its own. */
const groups = isLong ? Object.keys(requests).map((name) => [name]) : [Object.keys(requests)]

describe.each(someOf(states, 3))('when $name', ({ isAllowed, reach }) => {
  it.each(groups)('requests are answered accordingly by both cores at once, beginning with %s', async (...names) => {
    const at = await cores.newSite({ consent: policy() })
    const session = await begin(at)
    for (const core of cores.cores) await visitorAccessOf(core).authorize(credentialsOf(session))
    await reach(session, at)
    const answers: string[] = []
    for (const name of names)
      for (const core of [...cores.cores].reverse())
        answers.push(`${name}: ${await codeOf(requests[name as keyof typeof requests](session, core))}`)
    const expected = isAllowed ? 'ok' : 'ConsentRequired'
    expect(answers).toEqual(names.flatMap((name) => cores.cores.map(() => `${name}: ${expected}`)))
  })

  it('the page of a new session of the same visitor is stored accordingly', async () => {
    const at = await cores.newSite({ consent: policy() })
    const browser = randomUUID()
    const first = await begin(at, { browser })
    expect(await storedPage(first)).toBeUndefined()
    await reach(first, at)
    const again = await begin(at, { browser, core: cores.other })
    expect(await storedPage(again)).toEqual(isAllowed ? page : undefined)
  })

  it('an identification keeps the page accordingly', async () => {
    const at = await cores.newSite({ consent: policy() })
    const session = await begin(at)
    await reach(session, at)
    await codeOf(requests['a page report'](session, cores.core))
    const identified = await cores.identify(session, at.sign({ sub: newSubject() }))
    expect(await storedPage(identified)).toEqual(isAllowed ? page : undefined)
  })
})

describe('a page', () => {
  it('that was stored is removed when the visitor denies consent', async () => {
    const at = await cores.newSite({ consent: policy() })
    const session = await begin(at)
    await decide(session, 'granted')
    await requests['a page report'](session, cores.core)
    expect(await storedPage(session)).toEqual(page)
    await decide(session, 'denied', cores.other)
    expect(await storedPage(session)).toBeUndefined()
  })

  itLong('that arrives while the visitor denies consent is never stored after the denial', async () => {
    const at = await cores.newSite({ consent: policy() })
    for (let index = 0; index < (isLong ? 100 : 5); index += 1) {
      const session = await begin(at)
      await decide(session, 'granted')
      const [first, second] = [cores.core, cores.other]
      const reports = Promise.all([
        codeOf(requests['a page report'](session, first)),
        codeOf(requests['a message with a page'](session, second)),
        codeOf(delay(index % 10).then(() => requests['a page report'](session, second))),
      ])
      await delay(index % 7)
      await decide(session, 'denied')
      await reports
      await until('the page is gone', async () => (await storedPage(session)) === undefined)
    }
  })
})
