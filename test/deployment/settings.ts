import { coreSettings, readCoreConfig } from '../../core/config.ts'
import { deliverySettings, readDeliveryConfig } from '../../delivery/config.ts'
import { gatewaySettings, readConfig } from '../../gateway/config.ts'

type Environment = Record<string, string>

/** For each process: its setting names, settings required in production, settings reader, and port. */
export const parts = {
  core: {
    names: Object.keys(coreSettings.properties),
    required: ['MONGODB_URI', 'SECRET_KEYS', 'WORKSPACE_SESSION_SECRET'],
    read: (env: Environment) => readCoreConfig(env),
    port: 8090,
  },
  gateway: {
    names: Object.keys(gatewaySettings.properties),
    required: ['CORE_TOKEN', 'CORE_URLS', 'TRUST_PROXY'],
    read: (env: Environment) => readConfig(env),
    port: 8080,
  },
  delivery: {
    names: Object.keys(deliverySettings.properties),
    required: ['DELIVERY_TOKEN', 'CORE_URLS'],
    read: (env: Environment) => readDeliveryConfig(env),
    port: 8091,
  },
}

export type PartName = keyof typeof parts
export const partNames = Object.keys(parts) as PartName[]

/** Lists the problems of a process's environment. The list is empty if the process can start with it. */
export function faultsOf(part: PartName, env: Environment): string[] {
  const { names, required, read } = parts[part]
  const faults = [
    ...Object.keys(env)
      .filter((name) => !names.includes(name) && name !== 'NODE_ENV')
      .map((name) => `${part} has no setting ${name}`),
    ...required.filter((name) => !env[name]).map((name) => `${part} lacks ${name}`),
  ]
  try {
    read(env)
  } catch (error) {
    faults.push((error as Error).message)
  }
  return faults
}
