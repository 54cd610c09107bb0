import { describe, expect, it } from 'vitest'
import { readTracingConfig } from './config.ts'

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318' }

describe('tracing', () => {
  it.each([
    [{}],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: '' }],
    [{ ...endpoint, OTEL_SDK_DISABLED: 'true' }],
    [{ ...endpoint, OTEL_TRACES_EXPORTER: 'none' }],
  ])('tracing is off with the environment %j', (env) => {
    expect(readTracingConfig(env)).toBeUndefined()
  })

  it('by default, tracing samples all root traces, and follows the caller’s decision for other traces', () => {
    expect(readTracingConfig(endpoint)).toEqual({ sampler: 'parentbased_always_on', ratio: 1, delayMs: 5_000 })
    const env = { ...endpoint, OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.01' }
    expect(readTracingConfig(env)).toMatchObject({ sampler: 'parentbased_traceidratio', ratio: 0.01 })
  })

  it.each([
    ['OTEL_TRACES_SAMPLER', 'sometimes'],
    ['OTEL_TRACES_SAMPLER_ARG', '2'],
    ['OTEL_TRACES_SAMPLER_ARG', 'half'],
    ['OTEL_BSP_SCHEDULE_DELAY', '0'],
  ])('the tracing settings reject an invalid %s with an error that names it', (name, value) => {
    expect(() => readTracingConfig({ ...endpoint, [name]: value })).toThrow(name)
  })
})
