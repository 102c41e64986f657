"""The paper's experiments on its own data, one module each; in `quality/`, how good labels are on any data."""
