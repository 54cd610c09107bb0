import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { findSession } from '../bans/bans.ts'
import { sendAsVisitor } from '../conversations/messages.ts'
import { submitForm } from '../deliveries/lead-capture.ts'
import { eraseVisitor } from '../privacy/erasures.ts'
import { exportVisitor } from '../privacy/visitor-data.ts'
import type { ConsentDecision, SessionContent } from '../sessions/model.ts'
import { codeOf, hasFailed, newSubject, testCores } from '../test/cores.ts'
import { clientsOf } from '../test/operator-clients.ts'
import { credentialsOf } from '../test/visitor-credentials.ts'
import { acceptForms, finishErasures, visitorOf } from '../test/visitor-marks.ts'
import { revokeSession } from '../visitors/sessions.ts'
import { updateInstallation } from '../workspaces/workspaces.ts'
import { recordConsent } from './consents.ts'

const cores = testCores({ count: 2 })

const policyUrl = 'https://shop.example/privacy'
const policy = (policyVersion = 'v1') => ({ required: true, policyUrl, policyVersion })

const newSite = () => cores.newSite({ consent: policy() }, cores.workspaceId)
type Site = Awaited<ReturnType<typeof newSite>>

const newSession = (at: Site, browser: string = randomUUID()) => cores.newSession(cores.core, browser, at)

function decide(
  session: SessionContent,
  decision: ConsentDecision['decision'] = 'granted',
  { core = cores.core, policyVersion = 'v1', key = randomUUID() as string } = {},
) {
  return recordConsent(core, { credentials: credentialsOf(session), policyVersion, decision, idempotencyKey: key })
}

const sendOf = (session: SessionContent, core = cores.other) => codeOf(cores.send(session, 'Hello', { core }))

/** Expects that the core soon refuses messages after a change on another core. */
const expectRefused = (session: SessionContent, core = cores.other) =>
  expect.poll(() => sendOf(session, core), { interval: 20 }).toBe('ConsentRequired')

describe('an installation that requires consent', () => {
  it('refuses messages until the visitor grants consent, but never refuses reads', async () => {
    const session = await newSession(await newSite())
    expect(await sendOf(session)).toBe('ConsentRequired')
    expect(await cores.history(session)).toEqual([])
    await decide(session, 'denied')
    expect(await sendOf(session)).toBe('ConsentRequired')
    const { content } = await decide(session)
    expect(content).toMatchObject({ decision: 'granted', policyVersion: 'v1', policyUrl })
    for (const core of cores.cores) expect(await sendOf(session, core)).toBe('ok')
    await decide(session, 'denied')
    for (const core of cores.cores) await expectRefused(session, core)
  })

  itLong('refuses form submissions and requests to the retry route until the visitor grants consent', async () => {
    const { publicSiteKey, ...site } = await newSite()
    await acceptForms({ core: cores.core, publicSiteKey, workspaceId: cores.workspaceId })
    await updateInstallation(cores.core, publicSiteKey, { capabilities: { messageRetryRoute: true } }, undefined)
    const session = await newSession({ publicSiteKey, ...site })
    const credentials = credentialsOf(session)
    const form = () => submitForm(cores.other, { credentials, form: 'preChat', fields: {}, idempotencyKey: 'form-1' })
    const retry = () =>
      sendAsVisitor(cores.other, {
        credentials,
        clientOperationId: 'op-1',
        body: 'Hi',
        contentType: 'text',
        retryRoute: true,
      })
    expect([await codeOf(form()), await codeOf(retry())]).toEqual(['ConsentRequired', 'ConsentRequired'])
    await decide(session)
    const { formSubmissionId } = await form()
    expect(await codeOf(retry())).toBe('ok')
    await decide(session, 'denied')
    await expectRefused(session)
    // A repeat of an accepted operation returns its first result.
    expect(await form()).toEqual({ formSubmissionId, replayed: true })
    expect((await retry()).replayed).toBe(true)
  })
})

describe('a consent decision', () => {
  it('is stored once per idempotency key, and a repeat returns it even after a new policy version', async () => {
    const site = await newSite()
    const session = await newSession(site)
    const first = await decide(session, 'granted', { key: 'key-1' })
    await updateInstallation(cores.core, site.publicSiteKey, { consent: policy('v2') }, undefined)
    expect(await decide(session, 'granted', { key: 'key-1', core: cores.other })).toEqual({ ...first, replayed: true })
    expect(await codeOf(decide(session, 'denied', { key: 'key-1' }))).toBe('IdempotencyConflict')
    expect((await findSession(cores.core, session.sessionId)).consents).toHaveLength(1)
  })

  itLong(
    'is stored for all tabs after a repeat, no matter at which write the first process died',
    async () => {
      const site = await newSite()
      await cores.untilOneSurvives(async (mortal) => {
        const browser = randomUUID()
        const tabs = [await newSession(site, browser), await newSession(site, browser)]
        const [tab] = tabs as [SessionContent, SessionContent]
        const died = await hasFailed(decide(tab, 'granted', { core: mortal, key: 'key-1' }))
        if (died) cores.advance(16)
        await decide(tab, 'granted', { key: 'key-1' })
        for (const each of tabs) {
          expect(await sendOf(each)).toBe('ok')
          expect((await findSession(cores.core, each.sessionId)).consents).toHaveLength(1)
        }
        return died
      })
    },
    60_000,
  )

  it('applies to all tabs and new sessions of an anonymous visitor’s browser, but not to another browser', async () => {
    const site = await newSite()
    const browser = randomUUID()
    const [tab, other] = [await newSession(site, browser), await newSession(site, browser)]
    await decide(tab)
    expect(await sendOf(other)).toBe('ok')
    expect(await sendOf(await newSession(site, browser))).toBe('ok')
    expect(await sendOf(await newSession(site))).toBe('ConsentRequired')
    await decide(other, 'denied')
    await expectRefused(tab)
    expect(await sendOf(await newSession(site, browser))).toBe('ConsentRequired')
  })

  itLong(
    'is kept after a renewal and an identification, and then applies to the verified visitor on every device',
    async () => {
      const site = await newSite()
      const sub = newSubject()
      const browser = randomUUID()
      const anonymous = await newSession(site, browser)
      await decide(anonymous)
      const renewed = await cores.renew(anonymous)
      expect(await sendOf(renewed)).toBe('ok')
      const verified = await cores.identify(renewed, site.sign({ sub }))
      expect(await sendOf(verified)).toBe('ok')
      const device = await newSession(site)
      expect(await sendOf(device)).toBe('ConsentRequired')
      const second = await cores.identify(device, site.sign({ sub }), { core: cores.other })
      expect(await sendOf(second)).toBe('ok')
      await decide(second, 'denied')
      await expectRefused(verified)
      // After a logout, another person may use the browser.
      await decide(verified)
      expect(await sendOf(await cores.clear(verified))).toBe('ConsentRequired')
      expect(await sendOf(await newSession(site, browser))).toBe('ConsentRequired')
    },
  )

  it('does not apply to another installation', async () => {
    const browser = randomUUID()
    await decide(await newSession(await newSite(), browser))
    expect(await sendOf(await newSession(await newSite(), browser))).toBe('ConsentRequired')
  })

  it('is refused if the session has ended', async () => {
    const session = await newSession(await newSite())
    await revokeSession(cores.core, session.sessionId)
    expect(await codeOf(decide(session))).toBe('SessionRevoked')
  })

  itLong(
    'is shown to operators and exported, and is not inherited by sessions that begin after an erasure',
    async () => {
      const site = await newSite()
      const browser = randomUUID()
      const session = await newSession(site, browser)
      await decide(session, 'denied')
      await decide(session)
      const { sessions } = await clientsOf(cores.core, cores.workspaceId)
      const shown = (await sessions.getSession({ sessionId: session.sessionId })).session?.consent
      expect(shown).toMatchObject({ decision: 1, policyVersion: 'v1', policyUrl })
      const visitor = await visitorOf(cores, session)
      const exported: string[] = []
      for await (const line of exportVisitor(cores.core, visitor)) exported.push(line)
      expect(JSON.parse(exported[0]!).consents).toMatchObject([{ decision: 'denied' }, { decision: 'granted' }])
      expect(exported.join()).not.toContain('operation')
      await eraseVisitor(cores.core, visitor, 'desk')
      expect(await sendOf(await newSession(site, browser))).toBe('ConsentRequired')
      await finishErasures(cores, cores.core)
      expect(await sendOf(await newSession(site, browser))).toBe('ConsentRequired')
    },
  )
})

it.each([
  ['requires consent without a URL', { required: true, policyVersion: 'v1' }, '/consent/policyUrl required'],
  ['has no https URL', { ...policy(), policyUrl: 'http://shop.example' }, '/consent/policyUrl format'],
  ['has a script as URL', { ...policy(), policyUrl: 'javascript:alert(1)' }, '/consent/policyUrl format'],
  ['has no version', { required: true, policyUrl }, '/consent/policyVersion required'],
  ['has a URL but no version', { required: false, policyUrl }, '/consent/policyVersion required'],
  ['has a version of two lines', policy('a\nb'), '/consent/policyVersion pattern'],
  ['has a long version', policy('v'.repeat(65)), '/consent/policyVersion maxLength'],
])('a consent policy is rejected if it %s', async (_, consent, expected) => {
  const { publicSiteKey } = cores
  const failure = await updateInstallation(cores.core, publicSiteKey, { consent }, undefined).catch((e) => e)
  expect(failure.issues.map(({ path, rule }: { path: string; rule: string }) => `${path} ${rule}`)).toEqual([expected])
})
