/** Name and version of the public contract. */
export const CONTRACT = 'service.widget.public-api'
export const CONTRACT_VERSION = '1.0'

/** Path under which the gateways offer the public API. */
export const WIDGET_PREFIX = '/api/integrations/v1/widget'
