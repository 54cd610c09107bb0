import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { validate } from 'dockerfile-utils'
import { describe, expect, it } from 'vitest'
import { itLong } from '../support/is-long.ts'
import { listen } from '../support/listen.ts'
import { readDockerfile, root } from './dockerfile.ts'
import { partNames, parts } from './settings.ts'

// These tests read the Dockerfile only. `npm test -- --mode run test/deployment` tests the built images.
describe('the Dockerfile', () => {
  it('the Dockerfile passes the linter', async () => {
    expect(validate(await readDockerfile())).toEqual([])
  })

  it('the Dockerfile exposes the port of each process, and checks the health of the public one', async () => {
    const text = await readDockerfile()
    const ports = partNames.map((name) => parts[name].port).toSorted()
    expect(text).toContain(`EXPOSE ${ports.join(' ')} 9464\n`)
    expect(text).toContain(`CMD ["bash", "deploy/ready.sh", "${parts.gateway.port}"]`)
  })

  itLong('the health check of the images succeeds for 200 only, and fails if no part listens or answers', async () => {
    let status = 200
    const server = createServer(({ url }, response) => {
      if (status !== 0) response.writeHead(url === '/readyz' ? status : 404).end()
    })
    const { port, close } = await listen(server)
    const check = () =>
      new Promise<boolean>((resolve) => {
        execFile('bash', [join(root, 'deploy/ready.sh'), String(port)], (error) => resolve(!error))
      })
    const results: [number, boolean][] = []
    for (status of [200, 503, 0]) results.push([status, await check()])
    await close()
    results.push([-1, await check()])
    expect(results).toEqual([
      [200, true],
      [503, false],
      [0, false],
      [-1, false],
    ])
  })

  it('images and the example overlay are labelled with the version of the package', async () => {
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
    const overlay = await readFile(join(root, 'deploy/kubernetes/overlays/example/kustomization.yaml'), 'utf8')
    expect(await readDockerfile()).toContain(`LABEL org.opencontainers.image.version=${version}\n`)
    expect(overlay).toContain(`app.kubernetes.io/version: ${version} `)
  })

  it('the build context has every folder from which the image copies or whose code its pages contain', async () => {
    const text = await readDockerfile()
    const copied = [...text.matchAll(/^COPY (?!--from)((?:[\w./-]+ )+)\S+$/gm)].flatMap(([, names = '']) =>
      names.trim().split(' '),
    )
    const needed = ['browser', ...copied.flatMap((path) => (path === '.' ? [] : path.split('/')[0]!))]
    const allowed = (await readFile(join(root, '.dockerignore'), 'utf8'))
      .split('\n')
      .flatMap((line) => (line.startsWith('!') ? line.slice(1).split('/')[0]! : []))
    expect(needed.filter((name) => !allowed.includes(name))).toEqual([])
  })

  it('the Dockerfile uses one base image with a pinned major version', async () => {
    const text = await readDockerfile()
    expect(text.match(/^ARG NODE_IMAGE=(.*)$/m)?.[1]).toMatch(/^node:24-slim/)
    const bases = [...text.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base)
    expect(new Set(bases)).toEqual(new Set([`\${NODE_IMAGE}`, 'service']))
  })
})
