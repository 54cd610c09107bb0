import { describe, expect, it } from 'vitest'
import type { LifecycleSignal } from '../../browser/platform.ts'
import { createClientHarness, settled, until } from './client-harness.ts'
import { serverPerTest } from './server-per-test.ts'

const { clock, server } = serverPerTest()
const reports = () => server.seen('POST /presence').map(({ body }) => body?.state)

/** Starts a client whose page the test can hide. */
async function started() {
  const listeners = new Set<(signal: LifecycleSignal) => void>()
  const page = { isHidden: false, isOnline: true }
  const lifecycle = {
    isOnline: () => page.isOnline,
    isHidden: () => page.isHidden,
    subscribe(listener: (signal: LifecycleSignal) => void) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
  const harness = createClientHarness(server, 'pk_friendly', {
    clock,
    options: { platform: { lifecycle } },
  })
  await harness.started()
  const signal = (name: LifecycleSignal) => {
    for (const listener of [...listeners]) listener(name)
  }
  /** Waits for the next report and its response. */
  const reported = async (...states: string[]) => {
    await until(() => reports().length === states.length)
    await settled()
    expect(reports()).toEqual(states)
  }
  return { ...harness, page, signal, reported }
}

describe('the visitor’s presence', () => {
  it('is reported as `here` every 2 s while the chat is shown, and once as `away` afterwards', async () => {
    const { client, reported } = await started()
    client.setChatShown(false)
    await settled()
    client.setChatShown(true)
    await reported('here')
    clock.advance(1_900)
    await reported('here')
    clock.advance(200)
    await reported('here', 'here')
    client.setChatShown(false)
    await reported('here', 'here', 'away')
    clock.advance(60_000)
    await reported('here', 'here', 'away')
    const tabs = new Set(server.seen('POST /presence').map(({ body }) => body?.tab))
    expect(tabs.size).toBe(1)
  })

  it('is reported as `away` on a hidden page, and not at all on a left page, offline or without a session', async () => {
    const { client, page, signal, reported } = await started()
    client.setChatShown(true)
    await reported('here')
    page.isHidden = true
    signal('hidden')
    await reported('here', 'away')
    signal('pagehide')
    page.isHidden = false
    signal('visible')
    await reported('here', 'away')
    page.isOnline = false
    signal('pageshow')
    await reported('here', 'away')
    page.isOnline = true
    signal('online')
    await reported('here', 'away', 'here')
    client.stop()
    clock.advance(10_000)
    await reported('here', 'away', 'here')
    await client.start()
    await reported('here', 'away', 'here', 'here')
  })

  it('is not reported for a minute after a service without this route has refused a report', async () => {
    const { client, reported } = await started()
    server.features.failNext('/presence', { status: 404, code: 'NotFound' })
    client.setChatShown(true)
    await reported('here')
    clock.advance(59_000)
    await reported('here')
    clock.advance(2_000)
    await reported('here', 'here')
  })
})
