import { SettingError } from '../settings/settings.ts'

const samplers = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const

export type TracingConfig = NonNullable<ReturnType<typeof readTracingConfig>>

/**
 * Reads the settings of tracing. Returns undefined without an endpoint, because tracing is off then. OpenTelemetry
 * reads endpoint, headers, timeout and resource attributes itself. Errors: `SettingError`.
 */
export function readTracingConfig(env: NodeJS.ProcessEnv = process.env) {
  const endpoint = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || env.OTEL_EXPORTER_OTLP_ENDPOINT
  if (!endpoint || env.OTEL_SDK_DISABLED === 'true' || env.OTEL_TRACES_EXPORTER === 'none') return undefined
  const named = env.OTEL_TRACES_SAMPLER || 'parentbased_always_on'
  const sampler = samplers.find((name) => name === named)
  if (sampler === undefined) throw new SettingError(`OTEL_TRACES_SAMPLER must be one of ${samplers.join(', ')}`)
  const ratio = Number(env.OTEL_TRACES_SAMPLER_ARG || 1)
  if (!(ratio >= 0 && ratio <= 1)) throw new SettingError('OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1')
  const delayMs = Number(env.OTEL_BSP_SCHEDULE_DELAY || 5_000)
  if (!(delayMs > 0)) throw new SettingError('OTEL_BSP_SCHEDULE_DELAY must be a number of milliseconds')
  // `delayMs` is the maximum time that a finished span waits for its export.
  return { sampler, ratio, delayMs }
}
