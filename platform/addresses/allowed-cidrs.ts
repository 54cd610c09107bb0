import { SettingError, splitList, text } from '../settings/settings.ts'
import { type AddressCheck, CidrError, createAddressCheck } from './addresses.ts'

export const allowedCidrsSetting = text(
  'Non-public address ranges that destinations may use, separated by commas: `10.1.0.0/16,fd00:1::/32`. Cores and workers each check it.',
)

/** Creates the address check for a value of the setting. Errors: `SettingError`. */
export function parseAllowedCidrs(list: string): AddressCheck {
  try {
    return createAddressCheck({ allowedCidrs: splitList(list) })
  } catch (error) {
    if (!(error instanceof CidrError)) throw error
    throw new SettingError('DELIVERY_ALLOWED_CIDRS must be address ranges like 10.1.0.0/16, separated by commas')
  }
}
