import { validate } from 'dockerfile-utils'
import { describe, expect, it } from 'vitest'
import { readDockerfile } from './image.ts'
import { partNames, parts } from './settings.ts'

// What it makes is looked at by `npm test -- --config test/deployment/vitest.config.ts`.
describe('the Dockerfile', () => {
  it('has no fault that a linter finds', async () => {
    expect(validate(await readDockerfile())).toEqual([])
  })

  it('opens the port that each part listens on, and asks for its health there', async () => {
    const text = await readDockerfile()
    for (const name of partNames) {
      const [, stage = ''] = text.split(`FROM part AS ${name}\n`)
      expect(stage.match(/EXPOSE (\d+) 9464/)?.[1]).toBe(String(parts[name].port))
      expect(stage.match(/127\.0\.0\.1:(\d+)\/readyz/)?.[1]).toBe(String(parts[name].port))
    }
  })

  it('takes every base from one place, and none that changes its major version by itself', async () => {
    const text = await readDockerfile()
    expect(text.match(/^ARG NODE_IMAGE=(.*)$/m)?.[1]).toMatch(/^node:24-slim/)
    const bases = [...text.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base)
    expect(new Set(bases)).toEqual(new Set([`\${NODE_IMAGE}`, 'part']))
  })
})
