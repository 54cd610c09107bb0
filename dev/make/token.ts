// `npm run make -- token`: creates a service token. Secrets may come from the data folder.
import { runToken } from '../../core/token.ts'
import { readDevConfig } from '../config.ts'
import { withLocalSecrets } from '../local-core.ts'

runToken((given) => withLocalSecrets(given, readDevConfig()))
