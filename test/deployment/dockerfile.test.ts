import { validate } from 'dockerfile-utils'
import { describe, expect, it } from 'vitest'
import { readDockerfile } from './dockerfile.ts'
import { partNames, parts } from './settings.ts'

// These tests read the Dockerfile only. `npm test -- --mode run test/deployment` tests the built
// images.
describe('the Dockerfile', () => {
  it('the Dockerfile passes the linter', async () => {
    expect(validate(await readDockerfile())).toEqual([])
  })

  it('the Dockerfile exposes the port of each process and uses this port for its health check', async () => {
    const text = await readDockerfile()
    for (const name of partNames) {
      const [, stage = ''] = text.split(`FROM part AS ${name}\n`)
      expect(stage.match(/EXPOSE (\d+) 9464/)?.[1]).toBe(String(parts[name].port))
      expect(stage.match(/127\.0\.0\.1:(\d+)\/readyz/)?.[1]).toBe(String(parts[name].port))
    }
  })

  it('the Dockerfile uses one base image with a pinned major version', async () => {
    const text = await readDockerfile()
    expect(text.match(/^ARG NODE_IMAGE=(.*)$/m)?.[1]).toMatch(/^node:24-slim/)
    const bases = [...text.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base)
    expect(new Set(bases)).toEqual(new Set([`\${NODE_IMAGE}`, 'part']))
  })
})
