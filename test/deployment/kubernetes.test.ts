import { execFile } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { IDeployment, IStatefulSet } from 'kubernetes-models/apps/v1'
import type { IHorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2'
import type { IIngress, INetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1'
import type { IPodDisruptionBudget } from 'kubernetes-models/policy/v1'
import type { IService } from 'kubernetes-models/v1'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { itLong } from '../support/is-long.ts'
import { root } from './dockerfile.ts'
import { makeSecrets } from './secrets.ts'
import { faultsOf, partNames, parts } from './settings.ts'

const run = promisify(execFile)
const folder = join(root, 'deploy/kubernetes')

interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string }
  file: string
}

const manifests = globSync('**/*.yaml', { cwd: folder })
  .filter((file) => !file.endsWith('kustomization.yaml'))
  .flatMap((file) =>
    parseAllDocuments(readFileSync(join(folder, file), 'utf8')).map((document): Manifest => {
      expect(document.errors).toEqual([])
      return { ...(document.toJS() as Manifest), file }
    }),
  )
const find = <Kind>(kind: string, name: string) =>
  manifests.find((each) => each.kind === kind && each.metadata.name === name) as Kind & Manifest
const deployment = (name: string) => find<IDeployment>('Deployment', name).spec!.template.spec!
const containerOf = (name: string) => deployment(name).containers[0]!
const secrets = await makeSecrets()

/** TypeScript import of a manifest's type, for example `import('kubernetes-models/apps/v1').IDeployment`. */
const typeOf = ({ apiVersion, kind }: Manifest) => `import('kubernetes-models/${apiVersion}').I${kind}`

describe('the manifests', () => {
  it('the ingresses buffer every answer except the events', () => {
    const ingresses = manifests.filter(({ kind }) => kind === 'Ingress') as (IIngress & Manifest)[]
    const buffering = ingresses.map(({ metadata, spec }) => [
      spec!.rules![0]!.http!.paths[0]!.path,
      metadata!.annotations!['nginx.ingress.kubernetes.io/proxy-buffering'],
    ])
    expect(buffering).toEqual([
      ['/', 'on'],
      ['/api/integrations/v1/widget/events', 'off'],
    ])
  })

  itLong('the manifests have only fields that Kubernetes defines', async () => {
    // The folder is inside the project, so that the types can be resolved.
    const place = await mkdtemp(join(root, '.manifests-'))
    onTestFinished(() => rm(place, { recursive: true, force: true }))
    const lines = manifests.map((manifest, index) => {
      const { file, ...content } = manifest
      return `// ${file}\nexport const manifest${index}: ${typeOf(manifest)} = ${JSON.stringify(content, null, 2)}\n`
    })
    await writeFile(join(place, 'manifests.ts'), lines.join('\n'))
    const tsc = join(root, 'node_modules/typescript/bin/tsc')
    const options = [
      '--ignoreConfig',
      '--noEmit',
      '--strict',
      '--skipLibCheck',
      '--module',
      'nodenext',
      '--target',
      'es2024',
    ]
    const checked = await run(process.execPath, [tsc, ...options, '--types', '', join(place, 'manifests.ts')]).catch(
      (failure: { stdout: string }) => failure,
    )
    expect(checked.stdout).toBe('')
  })

  it('the manifests are all listed in a kustomization, and all listed files exist', () => {
    const applied = new Set<string>()
    for (const file of globSync('**/kustomization.yaml', { cwd: folder })) {
      const { resources = [] } = parse(readFileSync(join(folder, file), 'utf8')) as { resources?: string[] }
      for (const resource of resources) {
        const path = join(dirname(file), resource)
        expect(existsSync(join(folder, path)), `${file}: ${resource}`).toBe(true)
        applied.add(path)
      }
    }
    expect(manifests.filter(({ file }) => !applied.has(file))).toEqual([])
  })

  it('the manifests run each process by its role of the image, and the overlay sets the version of the image', () => {
    const overlay = parse(readFileSync(join(folder, 'overlays/example/kustomization.yaml'), 'utf8'))
    expect(partNames.map((name) => [containerOf(name).image, containerOf(name).args])).toEqual(
      partNames.map((name) => ['service', [name]]),
    )
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    const newName = 'registry.example.com/service'
    expect(overlay.images).toEqual([{ name: 'service', newName, newTag: version }])
    expect(readFileSync(join(root, 'docs/operating.md'), 'utf8')).toContain(`--tag ${newName}:${version} .`)
  })
})

it('the bot may reach the cores, keeps its cursor, and gets its token from a Secret only', () => {
  const { template, volumeClaimTemplates } = find<IStatefulSet>('StatefulSet', 'bot').spec!
  const container = template.spec!.containers[0]!
  expect(template.metadata?.labels).toMatchObject({ 'service-access': 'core' })
  expect(container.envFrom).toEqual([{ secretRef: { name: 'service-bot' } }])
  const env = Object.fromEntries(container.env!.map(({ name, value }) => [name, value]))
  expect(env).toEqual({ CORE_URLS: 'dns://core:8090', CURSOR_FILE: '/data/cursor' })
  expect(container.volumeMounts).toEqual([{ name: volumeClaimTemplates![0]!.metadata!.name, mountPath: '/data' }])
  expect(container.securityContext?.readOnlyRootFilesystem).toBe(true)
})

describe.each(partNames)('the %s', (name) => {
  const container = containerOf(name)

  it('the manifest of each process has valid settings, including all required ones', async () => {
    // An entry without a value reads a field of the pod. Only the values of other entries use it.
    const env = (container.env ?? []).filter(({ value }) => value !== undefined)
    const plain = Object.fromEntries(env.map(({ name: key, value = '' }) => [key, value]))
    // `npm run make -- secrets` does not create MONGODB_URI. Operators add it to core.env.
    const added: Record<string, string> = name === 'core' ? { MONGODB_URI: 'mongodb://mongodb' } : {}
    expect(container.envFrom).toEqual([{ secretRef: { name: `service-${name}` } }])
    expect(faultsOf(name, { ...(await secrets.read(`${name}.env`)), ...added, ...plain })).toEqual([])
    expect(Object.keys(plain).filter((key) => /TOKEN|SECRET|URI/.test(key))).toEqual([])
  })

  it('the manifest of each process has health checks on the port of the process', () => {
    expect(container.ports).toEqual([
      { name: 'http', containerPort: parts[name].port },
      { name: 'metrics', containerPort: 9464 },
    ])
    expect(container.livenessProbe?.httpGet).toEqual({ path: '/livez', port: 'http' })
    expect(container.readinessProbe?.httpGet).toEqual({ path: '/readyz', port: 'http' })
  })

  it('the grace period of each process exceeds its preStop sleep plus its shutdown time', () => {
    const pause = container.lifecycle?.preStop?.sleep?.seconds ?? 0
    const graceSeconds = { core: 10, gateway: 10, delivery: 15 }[name]
    expect(deployment(name).terminationGracePeriodSeconds).toBeGreaterThan(pause + graceSeconds)
  })

  it('each process runs without privileges, without root and with a read-only file system', () => {
    expect(deployment(name)).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    })
    const all = [container, ...(deployment(name).initContainers ?? [])]
    for (const { securityContext } of all)
      expect(securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
  })

  it('each process has an autoscaler and a disruption budget', () => {
    const { spec: scaling } = find<IHorizontalPodAutoscaler>('HorizontalPodAutoscaler', name)
    expect(scaling?.scaleTargetRef).toEqual({ apiVersion: 'apps/v1', kind: 'Deployment', name })
    expect(scaling?.minReplicas).toBeGreaterThan(1)
    const { spec: budget } = find<IPodDisruptionBudget>('PodDisruptionBudget', name)
    expect(budget?.maxUnavailable).toBe(1)
    expect(budget?.selector?.matchLabels).toEqual({ 'app.kubernetes.io/name': name })
  })
})

it('the overlay generates each Secret that a process reads, so that pods restart when a setting changes', async () => {
  const overlay = parse(readFileSync(join(folder, 'overlays/example/kustomization.yaml'), 'utf8'))
  const generated = overlay.secretGenerator as { name: string; envs: string[] }[]
  expect(generated.map(({ name }) => name)).toEqual(
    [...partNames.toSorted((one) => (one === 'core' ? -1 : 1)), 'operator'].map((name) => `service-${name}`),
  )
  for (const { envs } of generated)
    for (const file of envs) expect(Object.keys(await secrets.read(file.replace('secrets/', '')))).not.toEqual([])
})

it('the database is migrated before a core starts, with the image and the secrets of the core', () => {
  const [migrate] = deployment('core').initContainers ?? []
  expect([migrate?.image, migrate?.envFrom]).toEqual([containerOf('core').image, containerOf('core').envFrom])
  expect(migrate?.args).toEqual(['migrate'])
})

describe('the network', () => {
  it('the manifests have a headless service for the cores', () => {
    const { spec } = find<IService>('Service', 'core')
    expect([spec?.clusterIP, spec?.ports?.[0]?.port]).toEqual(['None', parts.core.port])
    for (const name of ['gateway', 'delivery']) {
      const { value } = containerOf(name).env!.find(({ name: key }) => key === 'CORE_URLS')!
      expect(value).toBe(`dns://core:${parts.core.port}`)
    }
  })

  const policy = (name: string) => find<INetworkPolicy>('NetworkPolicy', name).spec!
  /** Returns the allowed egress ports of a network policy, by destination. */
  const egressOf = (name: string) =>
    (policy(name).egress ?? []).map(({ to, ports }) => ({
      to: JSON.stringify(to ?? 'anywhere'),
      ports: ports?.map(({ port }) => port),
    }))

  it('the network policies deny all connections except DNS by default', () => {
    expect(policy('nothing-else')).toMatchObject({ policyTypes: ['Ingress', 'Egress'] })
    expect(policy('nothing-else').ingress).toBeUndefined()
    expect(egressOf('nothing-else')).toEqual([{ to: '"anywhere"', ports: [53, 53] }])
  })

  it('the network policies allow only the core to reach the database', () => {
    expect(egressOf('core').flatMap(({ ports }) => ports)).toContain(27017)
    for (const name of ['gateway', 'delivery']) {
      expect(egressOf(name).flatMap(({ ports = [] }) => ports)).not.toContain(27017)
      expect(egressOf(name).filter(({ to }) => to === '"anywhere"')).toEqual([])
    }
  })

  it('the network policies allow the delivery worker to reach the internet but no private network', () => {
    const world = (policy('delivery').egress ?? []).flatMap(({ to = [] }) => to.flatMap(({ ipBlock }) => ipBlock ?? []))
    expect(world.map(({ cidr }) => cidr)).toEqual(['0.0.0.0/0', '::/0'])
    const except = world.flatMap((block) => block.except ?? [])
    for (const range of ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '169.254.0.0/16', 'fc00::/7']) {
      expect(except).toContain(range)
    }
  })
})
