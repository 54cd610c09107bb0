/** One wrong setting or surrounding of a start, and the line that must name it. */
export interface Mistake {
  name: string
  part: 'core' | 'gateway' | 'delivery' | 'migrate' | 'token' | 'admin' | 'secrets' | 'start' | 'serve'
  /** Starts the core of `npm run core`, which uses its data folder. */
  isLocal?: true
  /** The value `free` stands for a port that nothing uses. */
  env?: Record<string, string>
  args?: string[]
  /** What the only line of the standard error must contain. */
  says: string
  /** Default: 2, a wrong setting. */
  code?: 1 | 2
}

/** Files, ports and services around the started process. */
export interface Surroundings {
  /** A port that another server uses. */
  takenPort: string
  /** Folder with `cert.pem`, `key.pem` (they match), `other-key.pem`, `garbage.pem`, and the data folders of `brokenFolders`. */
  folder: string
  /** Address of a database that answers. */
  mongodbUri: string
}

const key = (id: string, byte = 1) => `${id}:${Buffer.alloc(32, byte).toString('base64')}`
const secret = 'a-workspace-session-secret-of-48-characters-long'
const token = 'a-token-of-some-length'

/** Settings with which the core gets as far as its database. */
const coreSettings = {
  SECRET_KEYS: key('k1'),
  WORKSPACE_SESSION_SECRET: secret,
  MONGODB_URI: 'mongodb://127.0.0.1:1/',
  MONGODB_START_TIMEOUT_MS: '0',
  MONGODB_TIMEOUT_MS: '300',
  CORE_PORT: 'free',
}

/** Other settings, by the name of a wrong one. Without them, a process ignores the wrong one. */
const needed: Record<string, Record<string, string>> = {
  METRICS_HOST: { METRICS_PORT: 'free' },
  DELIVERY_HOST: { DELIVERY_PORT: 'free' },
  OTEL_TRACES_SAMPLER: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' },
}

const coreSetting = (name: string, value: string, says = name): Mistake => ({
  name: `core: ${name}=${value === '' ? '(empty)' : value.slice(0, 40)}`,
  part: 'core',
  env: { ...coreSettings, ...needed[name], [name]: value },
  says,
})
const gatewaySetting = (name: string, value: string, says = name): Mistake => ({
  name: `gateway: ${name}=${value.slice(0, 40)}`,
  part: 'gateway',
  env: { CORE_TOKEN: token, GATEWAY_PORT: '0', ...needed[name], [name]: value },
  says,
})
const deliverySetting = (name: string, value: string, says = name): Mistake => ({
  name: `delivery: ${name}=${value.slice(0, 40)}`,
  part: 'delivery',
  env: { DELIVERY_TOKEN: token, ...needed[name], [name]: value },
  says,
})
const command = (part: 'migrate' | 'token' | 'admin' | 'secrets', args: string[], says: string, env = {}): Mistake => ({
  name: `${part} ${args.join(' ')} ${Object.keys(env).join(' ')}`.trim(),
  part,
  args,
  env,
  says,
})
/** A setting of all parts in one process. */
const serveSetting = (name: string, value: string, says = name): Mistake => ({
  name: `serve: ${name}=${value === '' ? '(empty)' : value.slice(0, 40)}`,
  part: 'serve',
  env: { ...coreSettings, GATEWAY_PORT: 'free', [name]: value },
  says,
})
const uri = (options: string) => `mongodb://127.0.0.1:1/?${options}`

const production = (mistake: Mistake): Mistake => ({
  ...mistake,
  name: `${mistake.name} in production`,
  env: { ...mistake.env, NODE_ENV: 'production' },
})

/** Data folders with one file that a start cannot use, by name. The content is missing if a folder has its place. */
export const brokenFolders: Record<string, { file: string; content: string; isUnreadable?: true }> = {
  'empty-secrets': { file: 'secrets.json', content: '' },
  'cut-secrets': { file: 'secrets.json', content: '{"secretKeys":"k1:PRIVATE' },
  'null-secrets': { file: 'secrets.json', content: 'null' },
  'folder-secrets': { file: 'secrets.json', content: '', isUnreadable: true },
  'folder-token': { file: 'delivery.token', content: '', isUnreadable: true },
  'empty-demo': { file: 'demo.json', content: '' },
  'null-demo': { file: 'demo.json', content: 'null' },
  'folder-demo': { file: 'demo.json', content: '', isUnreadable: true },
}

/** Every mistake that a start must answer with one line, without a stack. */
export function mistakes({ takenPort, folder, mongodbUri }: Surroundings): Mistake[] {
  const file = (name: string) => `${folder}/${name}`
  return [
    serveSetting('MONGODB_URI', '', 'MONGODB_URI is missing: Address of the MongoDB server, such as mongodb://'),
    serveSetting('DOMAIN', 'https://chat.example.com', 'DOMAIN is invalid: Name at which'),
    serveSetting('CORE_PORT', 'eighty'),
    serveSetting('TRUST_PROXY', 'yes'),
    serveSetting('DELIVERY_GRACE_MS', '11s'),
    { ...serveSetting('MONGODB_URI', 'mongodb://127.0.0.1:1/', 'the database could not be reached'), code: 1 },
    coreSetting('CORE_PORT', 'eighty'),
    coreSetting('CORE_PORT', '70000'),
    coreSetting('CORE_PORT', takenPort, `CORE_PORT: the port ${takenPort} is in use`),
    coreSetting('CORE_HOST', '203.0.113.7', 'CORE_HOST: this machine has no address'),
    coreSetting('CORE_HOST', 'nowhere.invalid', 'CORE_HOST: this machine has no address'),
    coreSetting('CALLS_MAX', '0'),
    coreSetting('LOG_LEVEL', 'chatty'),
    coreSetting('METRICS_PORT', 'many'),
    coreSetting('MONGODB_DATABASE', 'my database'),
    coreSetting('MONGODB_TIMEOUT_MS', '5s'),
    coreSetting('MIGRATE_AT_START', 'true'),
    coreSetting('GRANT_LIFETIME_SECONDS', '15m'),
    coreSetting('SESSION_LIFETIME_SECONDS', '-1'),
    coreSetting('RETENTION_LEAD_DAYS', 'forever'),
    coreSetting('DELIVERY_ALLOWED_CIDRS', '10.0.0.0/99'),
    coreSetting('DELIVERY_LEASE_MS', '1'),
    coreSetting('MONGODB_URI', '', 'MONGODB_URI is missing'),
    coreSetting('MONGODB_URI', 'localhost:27017', 'MONGODB_URI: '),
    coreSetting('MONGODB_URI', 'http://localhost:27017', 'MONGODB_URI: '),
    coreSetting('MONGODB_URI', 'mongodb://user:p@ss:w@rd@localhost/', 'MONGODB_URI: '),
    coreSetting('MONGODB_URI', uri('retryWritez=true'), 'MONGODB_URI: option retrywritez is not supported'),
    coreSetting('MONGODB_URI', uri('maxPoolSize=many'), 'MONGODB_URI: '),
    coreSetting('MONGODB_URI', uri('maxPoolSize=2'), 'MONGODB_URI: the option maxPoolSize must be 8 or more'),
    coreSetting('MONGODB_URI', uri('readPreference=secondary'), 'MONGODB_URI: the option readPreference is not'),
    coreSetting('MONGODB_URI', uri('w=1'), 'MONGODB_URI: the option w is not allowed'),
    coreSetting('MONGODB_URI', uri('journal=false'), 'MONGODB_URI: the option journal is not allowed'),
    coreSetting('MONGODB_URI', uri('retryWrites=false'), 'MONGODB_URI: the option retryWrites is not allowed'),
    coreSetting('MONGODB_URI', uri('tls=true&tlsCAFile=/nowhere.pem'), 'MONGODB_URI: the file /nowhere.pem'),
    {
      ...coreSetting('MONGODB_URI', 'mongodb://127.0.0.1:1/', 'the database could not be reached within 0 s'),
      code: 1,
    },
    { ...coreSetting('MONGODB_URI', 'mongodb://nowhere.invalid/', 'ENOTFOUND nowhere.invalid'), code: 1 },
    { ...coreSetting('MONGODB_URI', 'mongodb+srv://nowhere.invalid/', 'nowhere.invalid'), code: 1 },
    coreSetting('SECRET_KEYS', '', 'SECRET_KEYS is missing'),
    coreSetting('SECRET_KEYS', 'secret'),
    coreSetting('SECRET_KEYS', `${key('k1')},${key('k1', 2)}`, 'SECRET_KEYS has two keys with the id "k1"'),
    coreSetting('SECRET_KEYS', `k1:${'='.repeat(43)}`, 'the key "k1" has fewer than 32 bytes'),
    coreSetting('WORKSPACE_SESSION_SECRET', '', 'WORKSPACE_SESSION_SECRET and WORKSPACE_SESSION_JWKS_URL are missing'),
    coreSetting('WORKSPACE_SESSION_SECRET', 'short', 'number 1 of the list has fewer than 32 bytes'),
    coreSetting('WORKSPACE_SESSION_JWKS_URL', 'http://login.example/keys'),
    coreSetting('OIDC_ISSUER', 'login.example'),
    coreSetting('OIDC_ISSUER', 'https://login.example', 'OIDC_ISSUER needs OIDC_CLIENT_ID'),
    {
      ...coreSetting('OIDC_ROLES', 'support=fly:planes', 'OIDC_ROLES: "support=fly:planes"'),
      env: {
        ...coreSettings,
        MONGODB_URI: mongodbUri,
        MONGODB_TIMEOUT_MS: '30000',
        OIDC_ISSUER: 'https://login.example',
        OIDC_CLIENT_ID: 'console',
        OIDC_ROLES: 'support=fly:planes',
      },
    },
    coreSetting('CORE_TLS_CERT', file('cert.pem'), 'CORE_TLS_CERT and CORE_TLS_KEY are needed together'),
    coreSetting('CORE_TLS_CA', file('cert.pem'), 'CORE_TLS_CA needs CORE_TLS_CERT'),
    tlsMistake('core', 'nowhere.pem', 'key.pem', 'CORE_TLS_CERT: the file'),
    tlsMistake('core', 'garbage.pem', 'key.pem', 'has no valid certificate (PEM)'),
    tlsMistake('core', 'cert.pem', 'garbage.pem', 'has no valid key (PEM)'),
    tlsMistake('core', 'cert.pem', 'other-key.pem', 'CORE_TLS_KEY: the key does not belong to the certificate'),
    tlsMistake('core', '.', 'key.pem', 'is a folder'),
    coreSetting('OTEL_TRACES_SAMPLER', 'sometimes'),
    gatewaySetting('CORE_TOKEN', 'short'),
    gatewaySetting('CORE_TOKEN', '', 'gateway: waiting for a core to create the token'),
    production(gatewaySetting('CORE_TOKEN', '', 'gateway: CORE_TOKEN is missing: set it')),
    production(deliverySetting('DELIVERY_TOKEN', '', 'delivery: DELIVERY_TOKEN is missing: set it')),
    production({ name: 'start', part: 'start', says: 'start: npm start runs a demo' }),
    ...Object.keys(brokenFolders).flatMap((name): Mistake[] => {
      const DATA_DIR = file(name)
      const found = brokenFolders[name]!
      const about = `${DATA_DIR}/${found.file} in DATA_DIR`
      const says = found.isUnreadable ? `${about} cannot be read (EISDIR)` : `${about} is damaged: `
      if (found.file === 'secrets.json')
        return [
          gatewaySetting('DATA_DIR', DATA_DIR, says),
          { name: `core: ${name}`, part: 'core', isLocal: true, env: { DATA_DIR, CORE_PORT: 'free' }, says },
        ]
      if (found.file === 'delivery.token') return [deliverySetting('DATA_DIR', DATA_DIR, says)]
      return [{ ...command('admin', ['workspaces', 'list'], says, { DATA_DIR }), name: `admin: ${name}` }]
    }),
    {
      name: 'core: DATA_DIR is a file',
      part: 'core',
      isLocal: true,
      env: { DATA_DIR: file('cert.pem'), CORE_PORT: 'free' },
      says: 'cert.pem cannot be created (EEXIST)',
    },
    gatewaySetting('CORE_URLS', 'core:8090'),
    gatewaySetting('CORE_URLS', 'dns://core'),
    gatewaySetting('CORE_URLS', 'http://user:password@core:8090'),
    gatewaySetting('GATEWAY_PORT', takenPort, `GATEWAY_PORT: the port ${takenPort} is in use`),
    gatewaySetting('GATEWAY_PORT', '99999'),
    gatewaySetting('GATEWAY_HOST', '203.0.113.7', 'GATEWAY_HOST: this machine has no address'),
    gatewaySetting('METRICS_PORT', takenPort, `METRICS_PORT: the port ${takenPort} is in use`),
    gatewaySetting('METRICS_HOST', '203.0.113.7', 'METRICS_HOST: this machine has no address'),
    gatewaySetting('TRUST_PROXY', '0.0.0.0/0', 'TRUST_PROXY must not have a range of all addresses'),
    gatewaySetting('TRUST_PROXY', '10.0.0.0/8,::/0', 'TRUST_PROXY must not have a range of all addresses'),
    gatewaySetting('TRUST_PROXY', 'yes'),
    gatewaySetting('RATE_LIMIT_FACTOR', '0'),
    gatewaySetting('RATE_LIMIT_REDIS_URL', 'redis.example:6379'),
    gatewaySetting('BODY_LIMIT_BYTES', '100'),
    gatewaySetting('API_DOCS', 'no'),
    gatewaySetting('CORE_CA', file('nowhere.pem'), 'CORE_CA: the file'),
    gatewaySetting('CLIENT_CERT', file('cert.pem'), 'CLIENT_CERT and CLIENT_KEY are needed together'),
    gatewaySetting('DATA_DIR', '/proc/self/mem', 'DATA_DIR'),
    deliverySetting('DELIVERY_TOKEN', 'short'),
    deliverySetting('DELIVERY_PORT', takenPort, `DELIVERY_PORT: the port ${takenPort} is in use`),
    deliverySetting('DELIVERY_HOST', '203.0.113.7', 'DELIVERY_HOST: this machine has no address'),
    deliverySetting('DELIVERY_CONCURRENCY', '0'),
    deliverySetting('DELIVERY_ALLOWED_CIDRS', 'everything'),
    deliverySetting('CORE_URLS', 'ftp://core:21'),
    command('migrate', ['--contrakt'], "Unknown option '--contrakt'"),
    command('migrate', [], 'MONGODB_URI is missing'),
    command('migrate', ['--rekey'], 'SECRET_KEYS is missing', { MONGODB_URI: mongodbUri }),
    command('token', ['--subject', 'ada'], '--subject and --scopes are both required'),
    command('token', ['--subject', 'ada', '--scopes', 'fly:planes'], 'unknown scope fly:planes'),
    command('token', ['--subject', 'ada', '--scopes', 'events:read'], 'SECRET_KEYS is missing'),
    command('admin', ['workspaces', 'lost'], 'lost'),
    command('admin', ['workspaces', 'list'], 'CORE_URL is missing'),
    command('secrets', ['--renew'], "Unknown option '--renew'"),
  ]

  function tlsMistake(part: 'core', cert: string, tlsKey: string, says: string): Mistake {
    return {
      name: `${part}: CORE_TLS_CERT=${cert} CORE_TLS_KEY=${tlsKey}`,
      part,
      env: { ...coreSettings, CORE_TLS_CERT: file(cert), CORE_TLS_KEY: file(tlsKey) },
      says,
    }
  }
}
