import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { expect, it } from 'vitest'

it('logs an error before a process reaches its memory limit', async () => {
  const script = `
    import { createLogger } from './platform/observability/logger.ts'
    import { warnNearMemoryLimit } from './platform/observability/process-metrics.ts'
    warnNearMemoryLimit(createLogger('core', 'info'))
    const objects = (length) => Array.from({ length }, (_, index) => ({ index }))
    const kept = [objects(2_000_000)]
    setInterval(() => kept.push(objects(1_000)), 10)`
  const args = ['--max-old-space-size=100', '--input-type=module-typescript', '-e', script]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] })
  const lines: unknown[] = []
  for await (const line of createInterface(child.stdout)) {
    lines.push(JSON.parse(line))
    child.kill()
  }
  expect(lines).toEqual([expect.objectContaining({ part: 'core', msg: expect.stringContaining('memory is nearly') })])
})
