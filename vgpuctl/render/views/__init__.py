"""One module per noun: the views of its Outputs, in a table `VIEWS` by kind."""
