import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { runs, someOf } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { testCores } from '../test/cores.ts'
import { createScene, refusalOf, waysToEnd } from '../test/endings.ts'
import { runScheduled } from '../test/scheduled-database.ts'
import type { TestStream } from '../test/streams.ts'
import { credentialsOf } from '../test/visitor-credentials.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { visitorAccessOf } from './visitor-access.ts'

const cores = testCores()

const whenOk = <T>(attempt: Promise<T>): Promise<T | undefined> => attempt.catch(() => undefined)

const isExpiry = ({ code }: { code: string }) => code === 'SessionExpired'

// An erasure also removes messages, so acknowledged messages need not be kept.
const isErasure = (name: string) => name.includes('erased')

/**
 * All ways to end a session except the expiry of its grant. A renewal can undo that expiry;
 * sleeping-sessions.test.ts tests it.
 */
const lasting = waysToEnd(cores).filter(({ code }) => code !== 'GrantExpired')
/** Expiry comes first: its jobs also remove the empty sessions of all tests before it, call by call of the scheduler. */
const [expiring, other] = [lasting.filter(isExpiry), lasting.filter((way) => !isExpiry(way))]

describe.each(someOf([...expiring, ...other], 5))(
  'when $name while the visitor sends a message, opens a stream and renews the session',
  (way) => {
    it('every stream ends, every grant is refused, and every acknowledged message is kept', async () => {
      await fc.assert(
        fc.asyncProperty(fc.scheduler(), async (scheduler) => {
          const scene = await createScene(cores, way)
          const { session } = scene
          const [here, there] = ['here', 'there'].map((name) =>
            cores.scheduledCore(scheduler, { name, atOnce: 'wakeups' }),
          )
          const both = [here!, there!]
          // Only the periodic job detects expiry. Every other end must be detected without jobs.
          for (const core of both) isExpiry(way) ? core.start() : wakeupsOf(core).start()
          // Make both cores cache the grant.
          await runScheduled(
            scheduler,
            Promise.all(both.map((core) => visitorAccessOf(core).authorize(credentialsOf(session)))),
          )

          const sent: string[] = []
          const streams: TestStream[] = []
          const grants = [session]
          const work = both.flatMap((core, index) => [
            whenOk(cores.send(session, `message ${index}`, { core })).then((ok) => ok && sent.push(`message ${index}`)),
            whenOk(cores.openStream(session, core)).then((stream) => stream && streams.push(stream)),
          ])
          const renewing = whenOk(cores.renew(session, { core: there! })).then(
            (renewed) => renewed && grants.push(renewed),
          )
          const ending = way.end(cores.scheduledCore(scheduler, { name: 'ending' }), scene)
          await runScheduled(scheduler, Promise.all([ending, renewing, ...work]))

          await runScheduled(
            scheduler,
            until('the end of streams and grants', async () => {
              const refusals = await Promise.all(both.flatMap((core) => grants.map((each) => refusalOf(each, core))))
              return streams.every(({ ended }) => ended) && !refusals.includes(undefined)
            }),
          )
          if (!isErasure(way.name)) {
            const log = await cores.log(session.conversationId)
            const kept = log.flatMap(({ message }) => message?.body ?? [])
            expect(kept).toEqual(expect.arrayContaining(sent))
          }
          await runScheduled(scheduler, Promise.all(both.map((core) => core.stop())))
        }),
        runs(20, 20),
      )
    })
  },
)
