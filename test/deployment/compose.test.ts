import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { readAdminConfig } from '../../admin/config.ts'
import { composeFaults } from './compose-faults.ts'
import { readDockerfile, root } from './dockerfile.ts'
import { makeSecrets } from './secrets.ts'
import { faultsOf, type PartName, partNames, parts } from './settings.ts'

interface Service {
  build?: string | { target: string }
  command?: string[]
  healthcheck?: { test: string[] }
  image?: string
  entrypoint?: string[]
  environment?: Record<string, string>
  env_file?: string | string[]
  depends_on?: string[] | Record<string, unknown>
  networks: string[]
  ports?: string[]
  volumes?: string[]
  deploy?: { replicas: number }
  mem_limit?: string
  logging?: { options: Record<string, string> }
}
interface Compose {
  services: Record<string, Service>
  networks: Record<string, { internal?: boolean }>
  volumes: Record<string, unknown>
}

const compose: Compose = parse(readFileSync(join(root, 'compose.cluster.yaml'), 'utf8'), { merge: true })
const secrets = await makeSecrets()
const services = Object.entries(compose.services)
const service = (name: string) => compose.services[name]!
const envFiles = ({ env_file: files = [] }: Service) => [files].flat()

describe('compose.cluster.yaml', () => {
  it('compose.cluster.yaml is valid according to the Compose Specification', () => {
    expect(composeFaults(compose)).toBeNull()
  })

  it('compose.cluster.yaml has a replica set, two cores, two gateways and a delivery worker', () => {
    expect(services.filter(([, { image, ports }]) => image?.startsWith('mongo:') && !ports).length).toBe(4)
    expect([service('core').deploy?.replicas, service('gateway').deploy?.replicas]).toEqual([2, 2])
  })

  it('compose.cluster.yaml runs each process by its role of the image, with a health check of its port', () => {
    for (const name of partNames) {
      const { build, command, healthcheck } = service(name)
      expect({ build, command }).toEqual({ build: '.', command: [name] })
      if (name !== 'gateway')
        expect(healthcheck?.test).toEqual(['CMD', 'bash', 'deploy/ready.sh', String(parts[name].port)])
    }
    expect(service('migrate').command).toEqual(['migrate'])
  })

  it.each(partNames)(
    'compose.cluster.yaml gives the %s valid settings, including all required ones',
    async (name: PartName) => {
      const given = await Promise.all(envFiles(service(name)).map((file) => secrets.read(file.replace('secrets/', ''))))
      expect(faultsOf(name, Object.assign({}, ...given, service(name).environment))).toEqual([])
    },
  )

  it('compose.cluster.yaml gives the administration command valid settings', async () => {
    const given = await secrets.read('operator.env')
    const config = readAdminConfig({ ...given, ...service('admin').environment })
    expect(config.CORE_URL).toBe(`http://core:${parts.core.port}`)
    expect(config.SERVICE_TOKEN).toBe(given.SERVICE_TOKEN)
  })

  it('compose.cluster.yaml reads secrets only from files of `npm run make -- secrets`, with a separate file for each process', async () => {
    for (const [name, each] of services) {
      for (const file of envFiles(each)) {
        expect(Object.keys(await secrets.read(file.replace('secrets/', ''))).length).toBeGreaterThan(0)
      }
      expect(JSON.stringify(each.environment ?? {})).not.toMatch(/TOKEN|SECRET|PASSWORD/)
      if (!['core', 'migrate'].includes(name)) expect(envFiles(each)).not.toContain('secrets/core.env')
    }
  })

  it('compose.cluster.yaml allows only the core to reach the database, and only cores and delivery workers to reach the internet', () => {
    const inDatabase = services.filter(([, { networks }]) => networks.includes('database')).map(([name]) => name)
    expect(inDatabase.toSorted()).toEqual(['core', 'migrate', 'mongodb-1', 'mongodb-2', 'mongodb-3', 'mongodb-init'])
    expect(compose.networks.database?.internal).toBe(true)
    expect(service('delivery').networks.toSorted()).toEqual(['inside', 'world'])
    // Cores need the internet to look up destinations and to fetch key sets.
    const inWorld = services.filter(([, { networks }]) => networks.includes('world')).map(([name]) => name)
    expect(inWorld.toSorted()).toEqual(['core', 'delivery', 'migrate'])
    expect(compose.networks.world?.internal).toBeUndefined()
    for (const [name, { networks }] of services) {
      for (const network of networks) expect(compose.networks, `${name}: ${network}`).toHaveProperty(network)
    }
  })

  it('compose.cluster.yaml limits the memory of each database, and limits its cache to at most half of this memory', () => {
    for (const name of ['mongodb-1', 'mongodb-2', 'mongodb-3']) {
      const { entrypoint = [], mem_limit: limit } = service(name)
      const [, cacheGiB] = /--wiredTigerCacheSizeGB ([\d.]+)/.exec(entrypoint.join('\n')) ?? []
      expect(limit).toBe('1g')
      expect(Number(cacheGiB)).toBeLessThanOrEqual(0.5)
    }
  })

  it('compose.cluster.yaml limits the logs of each container and the memory of each part', () => {
    for (const [name, { logging, build, mem_limit }] of services) {
      expect(logging?.options, name).toEqual({ 'max-size': '10m', 'max-file': '10' })
      if (build) expect(mem_limit, name).toMatch(/^\d+[mg]$/)
    }
  })

  it('compose.cluster.yaml provisions Grafana with the data source and the dashboard, and connects Prometheus to the alert manager', () => {
    const read = (path: string) => parse(readFileSync(join(root, 'deploy', path), 'utf8'))
    expect(service('grafana').volumes).toEqual([
      './deploy/grafana:/dashboards:ro',
      './deploy/grafana/provisioning:/etc/grafana/provisioning:ro',
    ])
    const [{ url, type, jsonData }] = read('grafana/provisioning/datasources/prometheus.yaml').datasources
    expect([new URL(url).hostname, type]).toEqual(['prometheus', 'prometheus'])
    expect(read('grafana/provisioning/dashboards/service.yaml').providers[0].options).toEqual({ path: '/dashboards' })
    const { global, alerting } = read('prometheus/prometheus.yml')
    expect(jsonData.timeInterval).toBe(global.scrape_interval)
    const [target] = alerting.alertmanagers[0].static_configs[0].targets
    expect(compose.services).toHaveProperty(target.split(':')[0])
    const { route, receivers } = read('alertmanager/alertmanager.yml')
    expect(receivers.map(({ name }: { name: string }) => name)).toContain(route.receiver)
  })

  it('Prometheus evaluates the rules at least as often as the shortest wait of an alert', () => {
    const read = (path: string) => parse(readFileSync(join(root, 'deploy/prometheus', path), 'utf8'))
    const seconds = (text: string) =>
      Number.parseInt(text, 10) * { s: 1, m: 60, h: 3600 }[text.at(-1) as 's' | 'm' | 'h']
    const rules: { for?: string }[] = read('alerts.yaml').groups[0].rules
    const waits = rules.flatMap(({ for: wait }) => (wait ? seconds(wait) : []))
    const { evaluation_interval = '1m' } = read('prometheus.yml').global
    expect(seconds(evaluation_interval)).toBeLessThanOrEqual(Math.min(...waits))
  })

  it('deploy/compose/bot.yaml adds a bot that reaches only the cores, with the token of its own file', async () => {
    const { services: added, volumes }: Compose = parse(readFileSync(join(root, 'deploy/compose/bot.yaml'), 'utf8'))
    expect(Object.keys(added)).toEqual(['bot'])
    const { build, networks, env_file, environment, volumes: mounted } = added.bot!
    expect([(build as { target: string }).target, networks, env_file]).toEqual(['bot', ['inside'], 'secrets/bot.env'])
    expect(environment).toEqual({ CORE_URLS: 'dns://core:8090', CURSOR_FILE: '/data/cursor' })
    expect(mounted).toEqual([`${Object.keys(volumes)[0]}:/data`])
    expect(await readDockerfile()).toContain('FROM service AS bot\nCOPY docs/examples/bot.ts docs/examples/\n')
  })

  it('compose.cluster.yaml publishes ports on localhost only', () => {
    for (const port of services.flatMap(([, { ports = [] }]) => ports)) expect(port).toMatch(/^127\.0\.0\.1:/)
  })

  it('compose.cluster.yaml refers to existing services, volumes and files', () => {
    for (const [, { depends_on: needed = {}, volumes = [] }] of services) {
      for (const other of Array.isArray(needed) ? needed : Object.keys(needed))
        expect(compose.services).toHaveProperty(other)
      for (const [source = ''] of volumes.map((volume) => volume.split(':'))) {
        if (source.startsWith('./')) expect(existsSync(join(root, source)), source).toBe(true)
        else expect(compose.volumes).toHaveProperty(source)
      }
    }
  })

  it('compose.cluster.yaml connects the proxy to the gateways, and gateways and workers to the cores, on the right ports', () => {
    const proxy = readFileSync(join(root, 'deploy/compose/nginx.conf'), 'utf8')
    expect(proxy).toContain(`set $gateways gateway:${parts.gateway.port};`)
    expect(proxy).toContain('listen 8080;')
    expect(service('proxy').ports).toEqual(['127.0.0.1:8080:8080'])
    for (const name of ['gateway', 'delivery']) {
      expect(service(name).environment?.CORE_URLS).toBe(`dns://core:${parts.core.port}`)
    }
  })

  it('compose.cluster.yaml creates the database user and replica set that the core’s URI names', async () => {
    const { MONGODB_URI = '' } = await secrets.read('compose-core.env')
    const { SERVICE_PASSWORD } = await secrets.read('mongodb.env')
    const uri = new URL(MONGODB_URI)
    const script = readFileSync(join(root, 'deploy/compose/init-replica-set.js'), 'utf8')
    expect([uri.username, uri.password]).toEqual(['service', SERVICE_PASSWORD])
    for (const host of uri.host.split(',')) {
      expect(compose.services).toHaveProperty(host)
      expect(script).toContain(`'${host}:27017'`)
    }
    const set = uri.searchParams.get('replicaSet')
    expect(script).toContain(`_id: '${set}'`)
    expect(service('mongodb-1').entrypoint?.join(' ')).toContain(`--replSet ${set} `)
  })
})
