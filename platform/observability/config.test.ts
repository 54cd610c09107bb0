import { describe, expect, it } from 'vitest'
import { readTracingConfig } from './config.ts'

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318' }

describe('tracing', () => {
  it.each([
    [{}],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: '' }],
    [{ ...endpoint, OTEL_SDK_DISABLED: 'true' }],
    [{ ...endpoint, OTEL_TRACES_EXPORTER: 'none' }],
  ])('is off with the environment %j', (env) => {
    expect(readTracingConfig(env)).toBeUndefined()
  })

  it('by default samples all root traces, and for other traces follows the caller’s decision', () => {
    expect(readTracingConfig(endpoint)).toEqual({ sampler: 'parentbased_always_on', ratio: 1, delayMs: 5_000 })
    const env = { ...endpoint, OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.01' }
    expect(readTracingConfig(env)).toMatchObject({ sampler: 'parentbased_traceidratio', ratio: 0.01 })
  })

  it.each([
    ['OTEL_TRACES_SAMPLER', 'sometimes'],
    ['OTEL_TRACES_SAMPLER_ARG', '2'],
    ['OTEL_TRACES_SAMPLER_ARG', 'half'],
    ['OTEL_BSP_SCHEDULE_DELAY', '0'],
  ])('rejects an invalid %s and names it', (name, value) => {
    expect(() => readTracingConfig({ ...endpoint, [name]: value })).toThrow(name)
  })
})
