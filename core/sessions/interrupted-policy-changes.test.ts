import { expect, it } from 'vitest'
import { someOf } from '../../test/support/is-long.ts'
import { readAvailability } from '../availability/availability.ts'
import { banSession } from '../bans/bans.ts'
import type { RunningCore } from '../context.ts'
import { captureLead } from '../deliveries/lead-capture.ts'
import { addSuppressions } from '../deliveries/suppressing.ts'
import { codeOf, hasFailed, type TestVisitor, testCores } from '../test/cores.ts'
import { site } from '../test/visitor-credentials.ts'
import { revokeSession } from '../visitors/sessions.ts'
import { installationFor, setConnectionStatus, updateInstallation } from '../workspaces/workspaces.ts'

/**
 * Time limit in milliseconds for a change to be in force. It is shorter than the 5 s after which a
 * cache reloads an entry without a wake-up.
 */
const withinMs = 4_000

const cores = testCores({ count: 2 })
const email = 'ada@example.com'
const consent = { required: true, policyUrl: 'https://shop.example/privacy', policyVersion: 'v1' }

interface PolicyChange {
  make(core: RunningCore, visitor: Visitor): Promise<unknown>
  /** Returns whether a core enforces the change. */
  isInForce(core: RunningCore, visitor: Visitor): Promise<boolean>
  endsStreams: boolean
}

type Visitor = TestVisitor & { connectionId: string }

const update =
  (settings: object): PolicyChange['make'] =>
  (core, { publicSiteKey }) =>
    updateInstallation(core, publicSiteKey, settings, undefined)

const refusesMessages =
  (code: string): PolicyChange['isInForce'] =>
  async (core, visitor) =>
    (await codeOf(cores.send(visitor, 'hello', { core }))) === code

const changes: [name: string, change: PolicyChange][] = [
  [
    'a capability',
    {
      make: update({ capabilities: { typing: false } }),
      isInForce: async (core, { publicSiteKey }) =>
        !(await installationFor(core, publicSiteKey, site)).capabilities.typing,
      endsStreams: false,
    },
  ],
  [
    'the override of the hours',
    {
      make: update({ availability: { mode: 'away' } }),
      isInForce: async (core, { publicSiteKey }) =>
        !(await readAvailability(core, await installationFor(core, publicSiteKey, site))).online,
      endsStreams: false,
    },
  ],
  [
    'the required consent',
    { make: update({ consent }), isInForce: refusesMessages('ConsentRequired'), endsStreams: false },
  ],
  [
    'a disabled installation',
    { make: update({ enabled: false }), isInForce: refusesMessages('OriginNotAllowed'), endsStreams: true },
  ],
  [
    'a disabled connection',
    {
      make: (core, { connectionId }) => setConnectionStatus(core, connectionId, 'disabled', undefined),
      isInForce: refusesMessages('ConnectionDisabled'),
      endsStreams: true,
    },
  ],
  [
    'a ban',
    {
      make: (core, { sessionId }) => banSession(core, sessionId, 'rude', undefined, undefined),
      isInForce: refusesMessages('VisitorBanned'),
      endsStreams: true,
    },
  ],
  [
    'a revocation',
    {
      make: (core, { sessionId }) => revokeSession(core, sessionId, undefined),
      isInForce: refusesMessages('SessionRevoked'),
      endsStreams: true,
    },
  ],
  [
    'a suppression',
    {
      make: (core, { workspaceId }) =>
        addSuppressions(core, { workspaceId, entries: [{ kind: 'email', value: email }], reason: '', addedBy: 'ops' }),
      isInForce: async (core, { workspaceId }) =>
        (await codeOf(captureLead(core, { workspaceId, source: 'crm', fields: { email } }, undefined))) ===
        'VisitorSuppressed',
      endsStreams: false,
    },
  ],
]

it.each(someOf(changes, 2))(
  'a policy change whose process dies between its writes is in force on every core once %s is stored',
  async (_name, { make, isInForce, endsStreams }) => {
    await cores.untilOneSurvives(async (mortal) => {
      const at = await cores.newSite()
      const visitor = { ...(await cores.newVisitor(at)), connectionId: at.connectionId }
      const streams = await Promise.all(cores.cores.map((core) => cores.openStream(visitor, core)))
      const isEverywhere = async (expected: boolean) => {
        const seen = await Promise.all(cores.cores.map((core) => isInForce(core, visitor)))
        return seen.every((isSeen) => isSeen === expected)
      }
      // Fills the caches.
      expect(await isEverywhere(false)).toBe(true)
      const died = await hasFailed(make(mortal, visitor))
      if (await isStored(isInForce, visitor)) {
        await expect.poll(() => isEverywhere(true), { timeout: withinMs, interval: 50 }).toBe(true)
        if (endsStreams)
          await expect.poll(() => streams.every(({ ended }) => ended), { timeout: withinMs, interval: 50 }).toBe(true)
      } else expect(died).toBe(true)
      for (const stream of streams) stream.close()
      return died
    })
  },
)

/** Returns whether a core without caches enforces the change. */
const isStored = (isInForce: PolicyChange['isInForce'], visitor: Visitor) => isInForce(cores.mortalCore(1_000), visitor)
