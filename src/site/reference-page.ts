// The page of the API reference. Swagger UI draws it from /openapi.json.

/** This origin alone, and nothing that is written into the page. The only images are the library's, in `data:` URLs. */
export const reference_policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  'img-src data:',
  "connect-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ')

/** `library` is the name of its files. Links are relative, for services whose address has a path of its own. */
export function referencePage(library: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>API reference · Waystation</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${library}.css">
<link rel="stylesheet" href="reference.css">
<script src="${library}.js" defer></script>
<script src="reference.js" type="module"></script>
</head>
<body>
<header class="pages">
<a class="brand" href="../docs">Waystation <span>Docs</span></a>
<h1>API reference</h1>
<nav aria-label="Documentation">
<a href="../docs">Documentation</a>
<a href="http">Common rules</a>
<a href="errors">Errors</a>
<a href="../console">Console</a>
<a href="../openapi.json">openapi.json</a>
<a href="../llms.txt">llms.txt</a>
<a href="../llms-full.txt">llms-full.txt</a>
</nav>
</header>
<main id="reference"><noscript>The reference needs JavaScript; the <a href="../docs">pages</a> do not.</noscript></main>
</body>
</html>
`
}
