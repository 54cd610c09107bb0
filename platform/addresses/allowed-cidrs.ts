import { SettingError, splitList } from '../settings/settings.ts'
import { type AddressCheck, CidrError, createAddressCheck } from './addresses.ts'

/** Creates the address check for a value of the setting. Errors: `SettingError`. */
export function parseAllowedCidrs(list: string): AddressCheck {
  try {
    return createAddressCheck({ allowedCidrs: splitList(list) })
  } catch (error) {
    if (!(error instanceof CidrError)) throw error
    throw new SettingError('DELIVERY_ALLOWED_CIDRS must be address ranges like 10.1.0.0/16, separated by commas')
  }
}
