import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { atFileEnd } from '../support/clean-up.ts'
import { freePort, startProgram } from '../support/processes.ts'
import { until } from '../support/until.ts'
import { root } from './dockerfile.ts'

const program = '/usr/bin/prometheus-alertmanager'
const isThere = existsSync(program)
if (!isThere) console.info('prometheus-alertmanager is not installed; skipping the tests of inhibited alerts')

type Labels = Record<string, string> & { alertname: string }

let url: string

/** Reports these alerts as firing. Returns the names of those that notify somebody. */
async function notifying(alerts: Labels[]): Promise<string[]> {
  const post = (more: object) =>
    fetch(`${url}/api/v2/alerts`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(alerts.map((labels) => ({ labels, ...more }))),
    })
  const shown = async (filter: string) => {
    const found = (await (await fetch(`${url}/api/v2/alerts?${filter}`)).json()) as { labels: Labels }[]
    return found.map(({ labels }) => labels.alertname)
  }
  expect((await post({})).status).toBe(200)
  await until('the alerts', async () => (await shown('')).length === alerts.length)
  const names = [...new Set(await shown('inhibited=false'))]
  await post({ endsAt: new Date().toISOString() })
  await until('their end', async () => (await shown('')).length === 0)
  return names
}

const core = (alertname: string, instance = 'core-1') => ({ alertname, job: 'service-core', instance })

describe.skipIf(!isThere)('alertmanager.yml', () => {
  beforeAll(async () => {
    const folder = await mkdtemp(join(tmpdir(), 'service-alertmanager-'))
    const port = await freePort()
    const config = join(root, 'deploy/alertmanager/alertmanager.yml')
    const flags = [`--config.file=${config}`, `--storage.path=${folder}`, '--cluster.listen-address=']
    const running = await startProgram(program, [...flags, `--web.listen-address=127.0.0.1:${port}`], port)
    url = `http://127.0.0.1:${port}`
    atFileEnd(async () => {
      await running.stop()
      await rm(folder, { recursive: true })
    })
  })

  it('a database that is away notifies once, whatever else it causes', async () => {
    const effects = ['Failures', 'SendsSlow', 'DatabaseFailures', 'GatewayWithoutCore', 'WakeupsLate', 'DeliveriesLate']
    const alerts = effects.map((name) => core(`Service${name}`))
    const away = ['core-1', 'core-2'].map((instance) => core('ServiceDatabaseDown', instance))
    expect(await notifying([...away, ...alerts])).toEqual(['ServiceDatabaseDown'])
  })

  it('effects without their cause notify, and so does another fault beside the cause', async () => {
    const effects = [core('ServiceFailures'), core('ServiceSendsSlow')]
    expect((await notifying(effects)).sort()).toEqual(['ServiceFailures', 'ServiceSendsSlow'])
    const others = ['ServicePartDown', 'ServiceDeadLetters', 'ServiceSubscriptionDisabled', 'ServiceTokenExpires']
    const names = await notifying([core('ServiceDatabaseDown'), ...others.map((name) => core(name))])
    expect(names.sort()).toEqual([...others, 'ServiceDatabaseDown'].sort())
  })

  it('a slow database hides slow sends, and no failures', async () => {
    const names = await notifying([core('ServiceDatabaseSlow'), core('ServiceSendsSlow'), core('ServiceFailures')])
    expect(names.sort()).toEqual(['ServiceDatabaseSlow', 'ServiceFailures'])
  })

  it('dead workers hide late deliveries; a dead gateway hides nothing of them', async () => {
    const late = core('ServiceDeliveriesLate')
    const down = (job: string) => ({ alertname: 'ServicePartDown', job, instance: 'one' })
    expect(await notifying([down('service-delivery'), late])).toEqual(['ServicePartDown'])
    expect((await notifying([down('service-gateway'), late])).sort()).toEqual([
      'ServiceDeliveriesLate',
      'ServicePartDown',
    ])
  })
})
