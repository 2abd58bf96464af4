// Shows the document beside this page. Requests that are tried from here are
// those of whoever has signed in.
SwaggerUIBundle({ url: "openapi.json", dom_id: "#api", deepLinking: true, validatorUrl: null });
